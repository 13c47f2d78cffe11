"""Simulates past decisions with other rules: changes of assignee, deadline and outcome.

The rules are applied to each hold as its flow asked it, by the steps of a real decision, guardrails
included, and the result is compared with what happened. No judge is called (what a judge said of a hold is
known where the same rule asked it), and nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, cast

import msgspec

from holdfast.errors import HoldfastError, RateLimitedError, VetoedError
from holdfast.holds.actions.submission import Submission, check, fitted
from holdfast.holds.policies.apply import apply
from holdfast.holds.policies.auto_decide import LEFT, UnsureError, policy_actor, rule_on
from holdfast.holds.policies.facts import UNTOUCHED, as_asked, facts_of_row
from holdfast.holds.policies.guardrails import Guardrails, review_resolution
from holdfast.holds.policies.judge import Judgement
from holdfast.holds.policies.policy import Policy, RuleMatch, first_match
from holdfast.holds.policies.select import PolicySelector
from holdfast.holds.timing.expire import final_action
from holdfast.model.hold_declaration import default_of
from holdfast.store.protocols import Store
from holdfast.types.duration import format_duration
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow, NewHold
from holdfast.types.status import HoldStatus
from holdfast.types.terms import ApprovalTerms

PAGE: Final = 500
JUDGED: Final = "(a judge)"
PEOPLE: Final = "(people)"


class Difference(msgspec.Struct, frozen=True):
    """`was`: what happened. `would_be`: under the rules. `field`: rule, assignee, approval, deadline, ..."""

    field: str
    was: str
    would_be: str


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """One past decision. `agrees`: whether the automatic outcome is what people decided; None: not
    automatic."""

    hold: str
    flow: str
    node: str
    prompt: str
    decided_by: str
    rule: str | None
    differences: tuple[Difference, ...] = ()
    agrees: bool | None = None


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """`differing`: only the holds with another result, oldest first."""

    looked_at: int
    differing: tuple[Replayed, ...]
    rules: dict[str, int]  # how often each would have matched
    automatic: int  # decided without a person
    agreeing: int  # of those, as people had decided
    overturned: int  # of those, against what people had decided


async def simulate(
    store: Store,
    policies: Iterable[Policy],
    *,
    tenant: str | None = None,
    since: int | None = None,
    flows: tuple[str, ...] = (),
    limit: int = 10_000,
    guardrails: Guardrails | None = None,
) -> Simulation:
    """Over all decisions since then, including those of rules and deadlines. `guardrails`: default: the
    standard checks. Raises RateLimitedError if too many large values of the tenant are being checked."""
    where = HoldFilter(
        tenant=tenant,
        status=(HoldStatus.resolved,),
        flow=flows,
        created_from=since,
        not_type=tuple(sorted(UNTOUCHED)),
        live=False,
    )
    governing, rails = PolicySelector(store, policies, complete=False), guardrails or Guardrails()
    replayed = [
        await replay(
            row, await governing.of(row.tenant, row.deployment), rails, await _left_to_people(store, row)
        )
        async for row in _rows(store, where, limit)
    ]
    judged = [each.agrees for each in replayed if each.agrees is not None]
    return Simulation(
        looked_at=len(replayed),
        differing=tuple(each for each in replayed if each.differences),
        rules=dict(Counter(each.rule for each in replayed if each.rule is not None)),
        automatic=len(judged),
        agreeing=sum(judged),
        overturned=len(judged) - sum(judged),
    )


async def _left_to_people(store: Store, row: HoldRow) -> tuple[str, ...]:
    """The rules that did not decide it, as the audit has them."""
    if row.terms.auto is None or (row.resolved_by or "").startswith("policy:"):
        return ()
    entries = await store.audit(row.tenant, hold=row.id)
    return tuple(msgspec.json.decode(each.data)["rule"] for each in entries if each.action == LEFT)


async def _rows(store: Store, where: HoldFilter, limit: int) -> AsyncIterator[HoldRow]:
    after: tuple[Any, ...] | None = None
    left = limit
    while left > 0:
        page = await store.list_holds(where, order=HoldOrder.oldest, after=after, limit=min(PAGE, left))
        for row, after in page:  # noqa: B007
            yield row
        left -= len(page)
        if len(page) < PAGE:
            return


async def replay(
    row: HoldRow, policies: Iterable[Policy], guardrails: Guardrails, left: Collection[str] = ()
) -> Replayed:
    """`left`: the rules whose judges left this hold to people."""
    chosen = first_match(policies, facts_of_row(row))
    before = as_asked(row)
    then = before if chosen is None else cast("HoldRow", apply(before, chosen))
    past = PastDecision(row)
    outcome = await _automatic(then, chosen, past, guardrails, left)
    automatic = outcome not in (PEOPLE, JUDGED)
    if outcome == PEOPLE:
        outcome = await _without_rule(then, past, guardrails)
    return Replayed(
        hold=row.id,
        flow=row.flow,
        node=row.node,
        prompt=row.prompt,
        decided_by=row.resolved_by or "",
        rule=None if chosen is None else chosen.name,
        differences=tuple(_differences(row, then, outcome, past.decided)),
        agrees=outcome == past.decided if automatic and past.by_people else None,
    )


class PastDecision:
    """What was decided, and by whom."""

    def __init__(self, row: HoldRow) -> None:
        self.row = row
        self.by = row.resolved_by or ""
        self.resolution: dict[str, Any] = msgspec.json.decode(row.resolution or b"{}")
        self.decided = effective_of(self.resolution)
        self.by_people = not self.by.startswith(("policy:", "system:"))

    def judgement(self, rule: str) -> Judgement | None:
        """Of the judge, if this rule decided by one."""
        confidence = self.resolution.get("confidence")
        if self.by != policy_actor(rule) or confidence is None:
            return None
        return Judgement(str(self.resolution["decision"]), confidence, self.resolution.get("comment") or "")


def effective_of(resolution: Mapping[str, Any]) -> str:
    return str(resolution.get("effective_decision") or resolution.get("decision"))


class _NotAskedError(Exception):
    """No judgement of this hold is known."""


async def _automatic(
    then: HoldRow,
    chosen: RuleMatch | None,
    past: PastDecision,
    guardrails: Guardrails,
    left: Collection[str],
) -> str:
    """What the rule decides, by the same steps as for an open hold: the judgement that is known in place of
    the judge, the check of the answer, the guardrails."""
    if chosen is None or not chosen.rule.is_automatic:
        return PEOPLE

    async def known(rule: RuleMatch, _facts: dict[str, Any]) -> Judgement:
        found = past.judgement(rule.name)
        if found is not None:
            return found
        if rule.name in left:
            raise UnsureError("its judge left it to people")
        raise _NotAskedError

    try:
        ruling = await rule_on(then, chosen, known)
        answer = check(then, Submission(decision=ruling.decision, comment=ruling.reason or None))
        resolution = await fitted(
            then, {"decision": answer.decision, "response_data": None, "comment": answer.comment}
        )
        return await _reviewed(then, resolution, policy_actor(chosen.name), guardrails)
    except _NotAskedError:
        return JUDGED
    except RateLimitedError:
        raise  # it says nothing about the hold
    except (UnsureError, HoldfastError):
        return PEOPLE


async def _without_rule(then: HoldRow, past: PastDecision, guardrails: Guardrails) -> str:
    """No rule decides: the person decides as before, or the deadline does."""
    if past.by_people:
        resolution = {**past.resolution, "effective_decision": None, "decided_by": None}
    elif past.resolution.get("auto_expired") and final_action(then) == "default_option":
        default = default_of(then.options, then.terms)
        resolution = {**past.resolution, "effective_decision": default, "decided_by": None}
    else:
        return PEOPLE
    try:
        return await _reviewed(then, resolution, past.by, guardrails)
    except VetoedError:
        return PEOPLE


async def _reviewed(then: HoldRow, resolution: Mapping[str, Any], by: str, guardrails: Guardrails) -> str:
    return effective_of(await review_resolution(guardrails, then, resolution, by))


def _differences(row: HoldRow, then: NewHold, outcome: str, decided: str) -> Iterable[Difference]:
    pairs = {
        "rule": (row.terms.routed_by or "(none)", then.terms.routed_by or "(none)"),
        "assignee": (row.assignee or "(unassigned)", then.assignee or "(unassigned)"),
        "approval": (_approval(row.terms.approval), _approval(then.terms.approval)),
        "deadline": (_deadline(row), _deadline(then)),
        "priority": (row.priority, then.priority),
        "outcome": (decided, outcome),
    }
    return [Difference(field, *pair) for field, pair in pairs.items() if pair[0] != pair[1]]


def _approval(approval: ApprovalTerms) -> str:
    if approval.mode == "any":
        return "one person"
    who = f" of {', '.join(approval.of)}" if approval.of else ""
    return f"{approval.need}{who}" if approval.mode == "quorum" else f"in order{who}"


def _deadline(hold: NewHold) -> str:
    if hold.terms.timeout:
        return hold.terms.timeout
    if hold.original_timeout is None:
        return "none"
    return format_duration(timedelta(microseconds=hold.original_timeout))
