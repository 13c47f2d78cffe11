"""A policy: an ordered list of rules. The first one that matches a hold applies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from holdfast.holds.policies.judge import Judges
from holdfast.holds.policies.rules import Rule
from holdfast.holds.policies.validate import require_valid

NO_JUDGES: Final[Judges] = MappingProxyType({})


class Policy:
    """`Policy("refunds", Rule(name="small", when="amount < 50", decide="approve"), ...)`.

    `judges`: those that its rules name, each a function of the facts or an object with `judge(facts)`; None:
    they are not known here, and people decide instead. Raises PolicyInvalidError that lists every problem.
    """

    # In the store, where anybody with the right to administer writes it: it may make the terms of a flow
    # stricter, and not weaker.
    stored: bool = False
    made_by: tuple[str, ...] = ()  # who wrote it through a server

    def __init__(
        self, name: str, *rules: Rule, judges: Judges | None = NO_JUDGES, written: bool = True
    ) -> None:
        """`written`: by the caller, and not by an older release."""
        self.name = name
        self.rules = rules
        self.judges: Judges = dict(judges or {})
        require_valid(name, rules, judges, written=written)

    def __repr__(self) -> str:
        return f"<policy {self.name!r}, {len(self.rules)} rules>"

    def rule_for(self, facts: Mapping[str, Any]) -> Rule | None:
        """The first that matches."""
        return next((rule for rule in self.rules if rule.matches(facts)), None)


class RuleMatch(msgspec.Struct, frozen=True):
    """The rule that matches a hold, and its policy."""

    policy: Policy
    rule: Rule

    @property
    def name(self) -> str:
        return f"{self.policy.name}/{self.rule.name}"


def first_match(policies: Iterable[Policy], facts: Mapping[str, Any]) -> RuleMatch | None:
    for policy in policies:
        rule = policy.rule_for(facts)
        if rule is not None:
            return RuleMatch(policy, rule)
    return None


def rule_named(policies: Iterable[Policy], name: str, facts: Mapping[str, Any]) -> RuleMatch | None:
    """The rule of that name (`refunds/small`) as it is now; of a policy (`refunds`), the one that matches."""
    for policy in policies:
        if policy.name == name:
            return first_match([policy], facts)
        for rule in policy.rules:
            if f"{policy.name}/{rule.name}" == name:
                return RuleMatch(policy, rule)
    return None
