"""The policies in force: those of the program, of files, and in the store."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.holds.policies.judge import Judges
from holdfast.holds.policies.parse import policy_of, read_policy
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.removed_rules import every_document
from holdfast.holds.policies.stored import KIND, MAKERS
from holdfast.store.protocols import Store

if TYPE_CHECKING:
    from holdfast.holds.policies.auto_decide import PolicyRuntime
    from holdfast.holds.policies.guardrails import Guardrails

VARIABLE: Final = "HOLDFAST_POLICIES"

STORED: Final = "store"
"""Stands for the policies that each tenant has in the store."""

PolicySource = Policy | str | Path


def policies_of(
    given: PolicySource | Iterable[PolicySource] | None, judges: Judges | None = None
) -> tuple[Policy, ...]:
    """In order: objects as they are, paths read. Raises PolicyInvalidError and SettingsError."""
    return tuple(
        each if isinstance(each, Policy) else read_policy(each, judges)
        for each in _listed(given)
        if each != STORED
    )


def _listed(given: PolicySource | Iterable[PolicySource] | None) -> list[PolicySource]:
    """Without an argument: the policies that HOLDFAST_POLICIES names."""
    if given is None:
        return [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name.strip()]
    return [given] if isinstance(given, (Policy, str, Path)) else [*given]


class PolicyLoader:
    """The policies of an instance, then those of a tenant in the store (`stored`), read with `judges`."""

    def __init__(
        self, fixed: Iterable[Policy], *, stored: Store | None = None, judges: Judges | None = None
    ) -> None:
        self.fixed = tuple(fixed)
        self.stored = stored
        self.judges = judges

    async def policies(self, tenant: str) -> tuple[Policy, ...]:
        """Raises PolicyInvalidError for a stored one that cannot be read."""
        if self.stored is None:
            return self.fixed
        return (*self.fixed, *await stored_policies(self.stored, tenant, self.judges))


class PolicyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The policies and judges of an instance, as configured."""

    policies: tuple[Policy, ...]
    stored: bool
    judges: Judges | None

    def for_store(self, store: Store, guardrails: Guardrails | None) -> PolicyRuntime:
        """The policies for a store. If there are rules, their approvals are checked by guardrails."""
        from holdfast.holds.policies.auto_decide import PolicyRuntime

        book = PolicyLoader(self.policies, stored=store if self.stored else None, judges=self.judges)
        return PolicyRuntime(store, book, guardrails)


def policy_config_for(
    given: PolicySource | Iterable[PolicySource] | None, judges: Judges | None
) -> PolicyConfig | None:
    """None if there are none. Raises PolicyInvalidError and SettingsError."""
    policies, stored = policies_of(given, judges), STORED in _listed(given)
    return PolicyConfig(policies=policies, stored=stored, judges=judges) if policies or stored else None


async def stored_policies(store: Store, tenant: str, judges: Judges | None = None) -> tuple[Policy, ...]:
    """Sorted by name. Raises PolicyInvalidError for one that this version cannot read."""
    found: list[Policy] = []
    makers = {each.name: each.body async for each in every_document(store, tenant, MAKERS)}
    async for each in every_document(store, tenant, KIND):
        policy = policy_of(msgspec.json.decode(each.body), each.name, judges=judges, written=False)
        policy.stored = True
        policy.made_by = msgspec.json.decode(makers.get(each.name, b"[]"), type=tuple[str, ...])
        found.append(policy)
    return tuple(found)
