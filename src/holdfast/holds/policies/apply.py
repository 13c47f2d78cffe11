"""Applies policy rules to a hold before its row is written, as the first step of the hold preparation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.permissions.assignees import with_named_by
from holdfast.holds.policies.deadlines import deadline, read_on_timeout
from holdfast.holds.policies.facts import UNTOUCHED, as_asked, facts_of
from holdfast.holds.policies.load import PolicyLoader
from holdfast.holds.policies.policy import Policy, RuleMatch, first_match
from holdfast.holds.policies.removed_rules import evaders, removed_policies, with_former_names, without
from holdfast.holds.policies.rules import Rule
from holdfast.holds.policies.select import PolicySelector
from holdfast.store.protocols import Store
from holdfast.types.decision_words import approving_answer, refusing_answer
from holdfast.types.duration import is_business, parse_duration
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.terms import PRIORITIES, ApprovalTerms, HoldTerms


class PolicyStep:
    """A `PreparationStep`: the first rule that matches is applied."""

    def __init__(self, book: PolicyLoader, store: Store) -> None:
        self.book = book
        self.store = store

    def rules(self) -> list[str]:
        """The policies that it applies, for other workers to compare."""
        stored = ["policies of the store"] if self.book.stored is not None else []
        return [*(f"policy {each.name}" for each in self.book.fixed), *stored]

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return hold.type not in UNTOUCHED

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        policies = await self.book.policies(facts.tenant)
        governing = await PolicySelector(self.store, policies).of(facts.tenant, facts.deployment)
        known = policy_facts(hold, facts)
        chosen = first_match(governing, known)
        if self.book.stored is None or (chosen is not None and not chosen.policy.stored):
            # Policies of the program and of files come first, so that none in the store could have applied.
            return hold if chosen is None else apply(hold, chosen)
        people = await self._evaders(facts, known, chosen, policies, governing)
        if people and chosen is not None:
            chosen = RuleMatch(chosen.policy, _no_weaker(chosen.rule, hold))
        return without(hold if chosen is None else apply(hold, chosen), people)

    async def _evaders(
        self,
        facts: HoldFacts,
        known: Mapping[str, Any],
        chosen: RuleMatch | None,
        policies: Iterable[Policy],
        governing: tuple[Policy, ...],
    ) -> tuple[str, ...]:
        deselected = [each for each in policies if each.stored and each not in governing]
        by: tuple[str, ...] = ()
        if deselected and facts.deployment is not None:
            found = await Deployments(self.store).find(facts.deployment, tenant=facts.tenant)
            by = () if found is None else found.made_by
        people = evaders(
            known,
            chosen,
            in_force=governing,
            deselected=deselected,
            deselected_by=by,
            removed=await removed_policies(self.store, facts.tenant),
        )
        return await with_former_names(self.store, facts.tenant, people)


def policy_facts(hold: NewHold, facts: HoldFacts) -> dict[str, Any]:
    return facts_of(
        hold,
        flow=facts.flow,
        tenant=facts.tenant,
        started_by=facts.started_by,
        deployment=facts.deployment,
        instance_key=facts.instance_key,
    )


def apply(hold: NewHold, chosen: RuleMatch) -> NewHold:
    """Apply a rule, replacing what another rule changed, if any."""
    hold = as_asked(hold)
    if chosen.policy.stored and hold.terms.binds_everybody:
        chosen = RuleMatch(chosen.policy, _no_weaker(chosen.rule, hold))
    rule = chosen.rule
    columns: dict[str, Any] = {}
    if rule.tags:
        columns["tags"] = tuple(dict.fromkeys((*hold.tags, *rule.tags)))
    if rule.assign is not None:
        columns["assignee"] = rule.assign
    if rule.priority is not None:
        columns["priority"] = rule.priority
    if rule.reminder is not None:
        seconds = parse_duration(rule.reminder).total_seconds()
        columns |= {"reminder_interval": max(1, round(seconds / 60)), "remind_at": None}
    columns |= _deadline(hold, rule)
    before = {name: getattr(hold, name) for name in columns} | {"terms": msgspec.to_builtins(hold.terms)}
    terms = msgspec.structs.replace(_terms(hold, chosen), routed_from=before)
    asked = {hold.assignee, hold.escalation_target, *hold.terms.approval.of, *hold.terms.approval.veto}
    named = [name for name in _assignees(rule, columns) if name not in asked]
    return with_named_by(msgspec.structs.replace(hold, **columns, terms=terms), named, chosen.policy.made_by)


def _assignees(rule: Rule, columns: Mapping[str, Any]) -> list[str | None]:
    """Everybody to whom a rule may give the hold."""
    approval = rule.approval or ApprovalTerms()
    rungs = [rung.to for rung in rule.ladder]
    return [columns.get("assignee"), columns.get("escalation_target"), *rungs, *approval.of, *approval.veto]


def _no_weaker(rule: Rule, hold: NewHold) -> Rule:
    """What a rule in the store may change of a hold that certain people must decide: it becomes no easier to
    decide, and no deadline decides it."""
    asked = hold.terms
    lapse = read_on_timeout(rule.on_timeout) if rule.on_timeout is not None else None
    decides = "default_option" in (hold.expiry_action, lapse.action if lapse else None)
    return msgspec.structs.replace(
        rule,
        approval=None if rule.approval is None else _stricter(hold, rule.approval),
        strict_assignee=True if asked.strict_assignee else rule.strict_assignee,
        assign=rule.assign if hold.assignee is None else None,
        timeout=None if decides else rule.timeout,
        on_timeout=None if decides else rule.on_timeout,
        calendar=None if decides else rule.calendar,
        default_option=None,
        # A lower one would let a link decide where a sign-in is required (`links.tokens.strength_of`).
        priority=_no_lower(rule.priority, hold.priority),
        guardrails=tuple(dict.fromkeys((*asked.guardrails, *rule.guardrails))) if asked.guardrails else (),
        guarded=True,
    )


def _no_lower(given: str | None, asked: str) -> str | None:
    return given if given is not None and PRIORITIES.index(given) > PRIORITIES.index(asked) else None


def _stricter(hold: NewHold, given: ApprovalTerms) -> ApprovalTerms:
    """The flow's terms with the rule's exclusions and vetoes; the rule's mode only where it asks for more.
    Its voters only where the flow names nobody."""
    asked = hold.terms.approval
    more = given if asked.mode == "any" or (asked.mode, given.mode) == ("quorum", "quorum") else asked
    if more is given and given.mode == "quorum" and given.need < asked.need:
        more = asked
    return msgspec.structs.replace(
        more,
        of=asked.of or (more.of if hold.assignee is None else ()),
        veto=tuple(dict.fromkeys((*asked.veto, *given.veto))),
        exclude=tuple(dict.fromkeys((*asked.exclude, *given.exclude))),
        distinct_people=asked.distinct_people or given.distinct_people,
    )


def _deadline(hold: NewHold, rule: Rule) -> dict[str, Any]:
    found = {} if rule.timeout is None else deadline(rule.timeout, hold.created_at)
    if rule.ladder:
        found |= {"expiry_action": "escalate", "escalation_target": rule.ladder[0].to}
    elif rule.on_timeout is not None:
        lapse = read_on_timeout(rule.on_timeout)
        action = None if _defaults_otherwise(hold, rule) else lapse.action
        found |= {"expiry_action": action, "escalation_target": lapse.target}
    return found


def _defaults_otherwise(hold: NewHold, rule: Rule) -> bool:
    """An option that the flow marks as the default takes precedence. If the rule names another one, the
    timeout decides nothing: the hold expires."""
    marked = next((option.id for option in hold.options or () if option.default is True), None)
    wanted = rule.default_option or _default(hold, rule)
    return marked is not None and wanted is not None and marked != wanted


def _terms(hold: NewHold, chosen: RuleMatch) -> HoldTerms:
    rule, terms = chosen.rule, hold.terms
    facts: dict[str, Any] = {"routed_by": chosen.name}
    given = {
        "approval": rule.approval,
        "max_reminders": rule.max_reminders,
        "calendar": rule.calendar,
        "strict_assignee": rule.strict_assignee,
        "default_option": rule.default_option or _default(hold, rule),
        "ladder": rule.ladder or None,
        "guardrails": rule.guardrails or None,
        "guarded": None if rule.guarded else False,
    }
    facts |= {name: value for name, value in given.items() if value is not None}
    if rule.timeout is not None:
        facts["timeout"] = str(rule.timeout) if is_business(rule.timeout) else None
    if rule.is_automatic and not is_for_people(terms, rule):
        facts["auto"] = chosen.name
    if any(part is not None for part in (rule.timeout, rule.on_timeout, rule.default_option)) or rule.ladder:
        facts["deadline_by"] = tuple(dict.fromkeys((*terms.deadline_by, *chosen.policy.made_by)))
    return msgspec.structs.replace(terms, **facts)


def is_for_people(asked: HoldTerms, rule: Rule) -> bool:
    """Whether certain people must decide, by the flow or the rule: such a hold is never decided
    automatically."""
    return asked.binds_everybody or rule.binds


def _default(hold: NewHold, rule: Rule) -> str | None:
    """`accept` and `reject` on timeout, as the hold's option for it."""
    says = read_on_timeout(rule.on_timeout).consents if rule.on_timeout is not None else None
    if says is None:
        return None
    return approving_answer(hold.options) if says else refusing_answer(hold.options)
