"""A small firm, and holds for it."""

from __future__ import annotations

from typing import Any

from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.base import Circle, Memberships, Person
from holdfast.holds.directory.file import PeopleOfTenant
from holdfast.holds.permissions.actor import memberships_for
from holdfast.holds.permissions.check import PermissionFacts, PermissionVerdict, can
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Actor, ApprovalTerms, HoldTerms
from tests.holds.timing.rows import a_row

NOW = 1_000_000
LATER = 2_000_000

DANA = Person(id="dana", email="dana@acme", name="Dana")
SAM = Person(id="sam", email="sam@acme")
KIM = Person(id="kim", email="kim@acme")
GONE = Person(id="gone", email="gone@acme", active=False)


class Firm:
    """A directory that a test changes as it goes."""

    def __init__(self, tenant: str = "default", **circles: tuple[str, ...]) -> None:
        self.tenant = tenant
        self.people = {each.id: each for each in (DANA, SAM, KIM, GONE)}
        self.groups = dict(circles) or {"finance": ("dana", "sam")}
        self.roles: dict[str, tuple[str, ...]] = {"cfo": ("kim",)}
        self.asked = 0

    def away(
        self, person: str, substitute: str, *, since: int | None = None, until: int | None = None
    ) -> None:
        known = self.people[person]
        absent = Away(substitute=substitute, since=since, until=until)
        self.people[person] = Person(id=known.id, email=known.email, away=absent)

    async def person(self, tenant: str, ref: str) -> Person | None:
        self.asked += 1
        return self._book(tenant).person(ref)

    async def group(self, tenant: str, key: str) -> Circle | None:
        return self._book(tenant).groups.get(key)

    async def role(self, tenant: str, key: str) -> Circle | None:
        return self._book(tenant).roles.get(key)

    async def memberships(self, tenant: str, ref: str) -> Memberships:
        return self._book(tenant).memberships(ref)

    async def stands_in_for(self, tenant: str, ref: str, now: int) -> list[Person]:
        return list(self._book(tenant).stands_in_for(ref, now))

    def _book(self, tenant: str) -> PeopleOfTenant:
        if tenant != self.tenant:
            return PeopleOfTenant()
        groups = [Circle(key=key, members=members) for key, members in self.groups.items()]
        roles = [Circle(key=key, members=members) for key, members in self.roles.items()]
        return PeopleOfTenant(self.people.values(), groups, roles)


def hold_for(kind: str, value: str = "", **fields: Any) -> HoldRow:
    """`terms` may be given by their own names: strict_assignee, excluded, approval=dict(...)."""
    names = set(HoldTerms.__struct_fields__)
    terms = {name: fields.pop(name) for name in list(fields) if name in names}
    if isinstance(terms.get("approval"), dict):
        terms["approval"] = ApprovalTerms(**terms["approval"])
    return a_row(assignee_type=kind, assignee_value=value, terms=HoldTerms(**terms), **fields)


def actor(name: str, *rights: str, **fields: Any) -> Actor:
    return Actor(id=name, rights=frozenset(rights), **fields)


async def judge(
    firm: Any,
    who: Actor,
    action: str,
    hold: HoldRow,
    past: PermissionFacts | None = None,
    now: int = NOW,
    **more: Any,
) -> PermissionVerdict:
    delegations = more.pop("delegations", None)
    standing = await memberships_for(who, firm, now, delegations=delegations)
    return can(standing, action, hold, now, past, **more)
