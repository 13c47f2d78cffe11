"""Which policies are in force: those given to the house, those of its files, those in the store."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from holdfast.holds.policies.judgement import Judges
from holdfast.holds.policies.keeping import KIND
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.reading import policy_of, read_policy
from holdfast.store.base import Store

VARIABLE: Final = "HOLDFAST_POLICIES"

STORED: Final = "store"
"""Among the policies of a house: those that each tenant keeps in the store."""

Given = Policy | str | Path


def policies_of(given: Given | Iterable[Given] | None, judges: Judges | None = None) -> tuple[Policy, ...]:
    """In order: objects as they are, paths read. Raises PolicyInvalidError and SettingsError."""
    return tuple(
        each if isinstance(each, Policy) else read_policy(each, judges)
        for each in _listed(given)
        if each != STORED
    )


def names_stored(given: Given | Iterable[Given] | None) -> bool:
    """Whether those in the store are meant too."""
    return STORED in _listed(given)


def _listed(given: Given | Iterable[Given] | None) -> list[Given]:
    """Nothing given: what HOLDFAST_POLICIES names."""
    if given is None:
        return [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name.strip()]
    return [given] if isinstance(given, (Policy, str, Path)) else [*given]


class Rulebook:
    """The policies of a house, then those that a tenant keeps in the store (`stored`).

    `judges`: for those that are read from the store or from files.
    """

    def __init__(
        self,
        given: Given | Iterable[Given] | None = None,
        *,
        judges: Judges | None = None,
        stored: Store | None = None,
    ) -> None:
        self.fixed = policies_of(given, judges)
        self.judges = judges
        self.stored = stored

    @property
    def is_empty(self) -> bool:
        return not self.fixed and self.stored is None

    async def policies(self, tenant: str) -> tuple[Policy, ...]:
        """Raises PolicyInvalidError for a stored one that cannot be read."""
        if self.stored is None:
            return self.fixed
        return (*self.fixed, *await stored_policies(self.stored, tenant, self.judges))


async def stored_policies(store: Store, tenant: str, judges: Judges | None = None) -> tuple[Policy, ...]:
    """By name. Raises PolicyInvalidError for what a newer version wrote and this one cannot read."""
    found = await store.documents(tenant, KIND)
    return tuple(policy_of(msgspec.json.decode(each.body), each.name, judges=judges) for each in found)
