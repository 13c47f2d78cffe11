"""The directory protocol and its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.holds.directory.absence import Away
from holdfast.types.deployment import Delegation


class Person(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`id` never changes; `email` is another name of the same person. A person who is not `active` has no
    rights."""

    id: str
    email: str = ""
    name: str = ""
    active: bool = True
    away: Away | None = None
    language: str = ""
    zone: str = ""


class Circle(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A group or a role: its key, and who is in it (ids or addresses)."""

    key: str
    name: str = ""
    members: tuple[str, ...] = ()


class Memberships(msgspec.Struct, frozen=True):
    """The groups and roles of a person, by key."""

    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()


class Directory(Protocol):
    """Answers must not be older than a few seconds. A directory that cannot answer raises
    DirectoryUnavailableError; until it can, no membership counts."""

    async def person(self, tenant: str, ref: str) -> Person | None:
        """By id, or by address (ignoring case)."""
        ...

    async def group(self, tenant: str, key: str) -> Circle | None: ...

    async def role(self, tenant: str, key: str) -> Circle | None: ...

    async def memberships(self, tenant: str, ref: str) -> Memberships:
        """Of a person by id or address; empty for an unknown person."""
        ...

    async def stands_in_for(self, tenant: str, ref: str, now: int) -> Sequence[Person]:
        """People who are away now and named this person as their substitute."""
        ...


class Delegations(Protocol):
    """To whom deployments are delegated. `ref` is a deployment's id."""

    async def delegation(self, tenant: str, ref: str) -> Delegation | None: ...

    async def delegated_to(self, tenant: str, people: frozenset[str], now: int) -> frozenset[str]:
        """The deployments that are delegated now to a person with one of these names
        (`assignees.person_key`)."""
        ...
