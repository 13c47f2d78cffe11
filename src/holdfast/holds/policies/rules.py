"""Rules, as they are written in code or read from a file. The first that matches a hold counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from holdfast.holds.policies.facts import resolver_of
from holdfast.holds.policies.judgement import Judges
from holdfast.model.expr import compile_expr
from holdfast.telemetry import log
from holdfast.types.terms import Approval, Rung

Duration = str | int | float | timedelta
When = str | Callable[[Mapping[str, Any]], Any] | None

THRESHOLD: Final = 0.7
JUDGE_TIMEOUT: Final = 30.0


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happens to the holds that it matches; what it does not say stays as the flow says.

    `when`: an expression over the hold's facts, or a function of them; nothing matches every hold. `decide`:
    the answer that is given without a person: the id of an option, or `approve` and `reject` for whatever the
    hold offers for yes and no. `judge`: who is asked for one first; people are, where it is not sure enough.
    """

    name: str
    when: When = None
    assign: str | None = None
    approval: Approval | None = None
    timeout: Duration | None = None
    on_timeout: str | None = None
    default_option: str | None = None
    priority: str | None = None
    reminder: Duration | None = None
    max_reminders: int | None = None
    ladder: tuple[Rung, ...] = ()
    calendar: str | None = None
    strict_assignee: bool | None = None
    tags: tuple[str, ...] = ()
    decide: str | None = None
    reason: str = ""
    judge: str | None = None
    threshold: float = THRESHOLD
    judge_timeout: Duration = JUDGE_TIMEOUT
    guardrails: tuple[str, ...] = ()
    guarded: bool = True

    @property
    def is_automatic(self) -> bool:
        return self.decide is not None or self.judge is not None

    def matches(self, facts: Mapping[str, Any]) -> bool:
        """A condition that cannot be told does not match. Raises nothing."""
        if self.when is None:
            return True
        try:
            if isinstance(self.when, str):
                return compile_expr(self.when).evaluate(resolver_of(facts)) is True
            return self.when(facts) is True
        except Exception as error:
            log.warning("rule %r could not be asked: %s: %s", self.name, type(error).__name__, error)
            return False


class Policy:
    """`Policy("refunds", Rule(name="small", when="amount < 50", decide="approve"), ...)`.

    `judges`: those that its rules name, each a function of the facts or something with `judge(facts)`.
    Raises PolicyInvalidError that lists every problem.
    """

    def __init__(self, name: str, *rules: Rule, judges: Judges | None = None) -> None:
        from holdfast.holds.policies.checking import demand_valid

        self.name = name
        self.rules = rules
        self.judges: Judges = dict(judges or {})
        demand_valid(self)

    def __repr__(self) -> str:
        return f"<policy {self.name!r}, {len(self.rules)} rules>"

    def rule_for(self, facts: Mapping[str, Any]) -> Rule | None:
        return next((rule for rule in self.rules if rule.matches(facts)), None)


class Chosen(msgspec.Struct, frozen=True):
    """The rule that matches a hold, and whose it is."""

    policy: Policy
    rule: Rule

    @property
    def name(self) -> str:
        return f"{self.policy.name}/{self.rule.name}"


def first_match(policies: Iterable[Policy], facts: Mapping[str, Any]) -> Chosen | None:
    for policy in policies:
        rule = policy.rule_for(facts)
        if rule is not None:
            return Chosen(policy, rule)
    return None


def named(policies: Iterable[Policy], name: str, facts: Mapping[str, Any]) -> Chosen | None:
    """The rule of that name (`refunds/small`) as it is now; of a policy (`refunds`), the one that matches."""
    for policy in policies:
        if policy.name == name:
            return first_match([policy], facts)
        for rule in policy.rules:
            if f"{policy.name}/{rule.name}" == name:
                return Chosen(policy, rule)
    return None
