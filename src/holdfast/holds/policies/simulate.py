"""Simulates past decisions with other rules: changes of assignee, deadline and outcome.

The rules are applied to each hold as its flow asked it, and the result is compared with what happened. No
judge is called and nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Any, Final

import msgspec

from holdfast.holds.policies.apply import apply, is_for_people
from holdfast.holds.policies.arbiter import UnsureError, answer_for
from holdfast.holds.policies.facts import UNTOUCHED, as_asked, facts_of_row
from holdfast.holds.policies.policy import Policy, RuleMatch, first_match
from holdfast.holds.policies.select import PolicySelector
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
) -> Simulation:
    """Over all decisions since then, including those of rules and deadlines."""
    where = HoldFilter(
        tenant=tenant,
        status=(HoldStatus.resolved,),
        flow=flows,
        created_from=since,
        not_type=tuple(sorted(UNTOUCHED)),
        live=False,
    )
    governing = PolicySelector(store, policies)
    replayed = [
        replay(row, await governing.of(row.tenant, row.deployment))
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


def replay(row: HoldRow, policies: Iterable[Policy]) -> Replayed:
    chosen = first_match(policies, facts_of_row(row))
    before = as_asked(row)
    then = before if chosen is None else apply(before, chosen)
    outcome = _outcome(row, chosen)
    resolution: dict[str, Any] = msgspec.json.decode(row.resolution or b"{}")
    decided = str(resolution.get("effective_decision") or resolution.get("decision"))
    by_people = not (row.resolved_by or "").startswith(("policy:", "system:"))
    return Replayed(
        hold=row.id,
        flow=row.flow,
        node=row.node,
        prompt=row.prompt,
        decided_by=row.resolved_by or "",
        rule=None if chosen is None else chosen.name,
        differences=tuple(_differences(row, then, outcome, decided, by_people=by_people)),
        agrees=outcome == decided if outcome not in (PEOPLE, JUDGED) and by_people else None,
    )


def _outcome(row: HoldRow, chosen: RuleMatch | None) -> str:
    rule = chosen.rule if chosen is not None else None
    if rule is None or is_for_people(as_asked(row).terms, rule):
        return PEOPLE
    if rule.decide is None:
        return JUDGED if rule.judge is not None else PEOPLE
    try:
        return answer_for(row, rule.decide)
    except UnsureError:
        return PEOPLE


def _differences(
    row: HoldRow, then: NewHold, outcome: str, decided: str, *, by_people: bool
) -> Iterable[Difference]:
    pairs = {
        "rule": (row.terms.routed_by or "(none)", then.terms.routed_by or "(none)"),
        "assignee": (row.assignee or "(unassigned)", then.assignee or "(unassigned)"),
        "approval": (_approval(row.terms.approval), _approval(then.terms.approval)),
        "deadline": (_deadline(row), _deadline(then)),
        "priority": (row.priority, then.priority),
        "outcome": (decided, decided if outcome == PEOPLE and by_people else outcome),
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
