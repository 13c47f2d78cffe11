"""Where somebody stands when they want to act: who they are, what they belong to, for whom they stand in."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.base import Delegations, Directory, Memberships, Person
from holdfast.holds.permissions.assignees import DELEGATED, person_key
from holdfast.telemetry import log
from holdfast.types.clock import to_datetime
from holdfast.types.schedule import person_behind
from holdfast.types.terms import MANAGE, RESOLVE, Actor, Assignee

NO_PEOPLE: Final = ("service:", "agent:", "system:", "policy:")
"""What the names of those begin with whom no directory of people has to know."""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """As whom somebody may act: `people` are the names of one person, by id and by address."""

    people: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    delegations: frozenset[str] = frozenset()
    for_whom: str | None = None  # the person who is away; none: oneself

    def fits(self, assignee: Assignee) -> bool:
        names = {"user": self.people, "group": self.groups, "role": self.roles, DELEGATED: self.delegations}
        return assignee.value in names.get(assignee.type, frozenset())


class ActorMemberships(msgspec.Struct, frozen=True, kw_only=True):
    """`barred`: why this person may do nothing at all, whatever their credential says. `silence`: why the
    directory did not say what they belong to."""

    actor: Actor
    own: Capacity = Capacity()
    others: tuple[Capacity, ...] = ()
    barred: str | None = None
    silence: str | None = None

    @property
    def capacities(self) -> tuple[Capacity, ...]:
        return (self.own, *self.others)

    def has(self, right: str) -> bool:
        """Who may manage may also resolve."""
        rights = self.actor.rights
        return right in rights or (right == RESOLVE and MANAGE in rights)


async def memberships_for(
    actor: Actor, directory: Directory | None, now: int, *, delegations: Delegations | None = None
) -> ActorMemberships:
    """With a directory, what it says now counts, and not what the credential said when it was made. While it
    cannot be asked, nobody is a member of anything."""
    if directory is None:
        own = Capacity(people=frozenset({person_key(actor.id)}), groups=actor.groups, roles=actor.roles)
        return ActorMemberships(actor=actor, own=await _with_delegations(own, actor.tenant, now, delegations))
    try:
        return await _looked_up(actor, directory, now, delegations)
    except DirectoryUnavailableError as error:
        log.error("nobody is a member of anything: %s", error)
        return ActorMemberships(actor=actor, silence=error.message.rstrip("."))


async def _looked_up(
    actor: Actor, directory: Directory, now: int, delegations: Delegations | None
) -> ActorMemberships:
    tenant = actor.tenant
    person = await directory.person(tenant, person_key(actor.id))
    if person is None:
        # Somebody who left keeps the rights of a live credential, and none of what was assigned to them.
        if actor.id.startswith(NO_PEOPLE):
            return ActorMemberships(actor=actor, own=Capacity(people=frozenset({actor.id})))
        return ActorMemberships(actor=actor, silence=f"the directory knows no {actor.id}")
    if not person.active:
        return ActorMemberships(actor=actor, barred=f"{actor.id} is not active any more")
    own = await _capacity(person, directory, tenant, now, delegations)
    others = [
        await _capacity(each, directory, tenant, now, delegations, for_whom=f"user:{each.id}")
        for each in await directory.stands_in_for(tenant, person.id, now)
        if each.active and each.id != person.id
    ]
    return ActorMemberships(actor=actor, own=own, others=tuple(others))


async def _capacity(
    person: Person,
    directory: Directory,
    tenant: str,
    now: int,
    delegations: Delegations | None,
    *,
    for_whom: str | None = None,
) -> Capacity:
    member = await directory.memberships(tenant, person.id)
    capacity = Capacity(people=names_of(person), groups=member.groups, roles=member.roles, for_whom=for_whom)
    return await _with_delegations(capacity, tenant, now, delegations)


async def capacity_named(
    name: str, tenant: str, directory: Directory | None, *, belonging: bool = True
) -> Capacity | None:
    """Of somebody whom a hold names, under all their names; None: they are not there. `belonging`: also what
    they belong to, which costs more to find out."""
    if directory is None:
        return Capacity(people=frozenset({name}))
    person = await directory.person(tenant, name)
    if person is None or not person.active:
        return None
    if not belonging:
        return Capacity(people=names_of(person))
    return await _capacity(person, directory, tenant, 0, None)


async def _with_delegations(
    capacity: Capacity, tenant: str, now: int, delegations: Delegations | None
) -> Capacity:
    if delegations is None:
        return capacity
    found = await delegations.delegated_to(tenant, capacity.people, now)
    return msgspec.structs.replace(capacity, delegations=found)


def names_of(person: Person) -> frozenset[str]:
    """Every name under which a hold can be assigned to them."""
    return frozenset(person_key(name) for name in (person.id, person.email) if name)


def names_as(standing: ActorMemberships, for_whom: str | None) -> tuple[str, ...]:
    """All names of somebody who acts, and of the person whom they act for."""
    acting = [each.people for each in standing.others if each.for_whom == for_whom]
    return tuple(sorted(standing.own.people.union(*acting)))


def assignees_of(standing: ActorMemberships) -> tuple[tuple[str, str], ...]:
    """What is theirs, as a filter of holds has it: (type, value)."""
    found: set[tuple[str, str]] = set()
    for capacity in standing.capacities:
        found.update(("user", name) for name in capacity.people)
        found.update(("group", key) for key in capacity.groups)
        found.update(("role", key) for key in capacity.roles)
        found.update((DELEGATED, ref) for ref in capacity.delegations)
    return tuple(sorted(found))


async def starter_memberships(
    directory: Directory | None, tenant: str, started_by: str | None
) -> tuple[str, ...] | None:
    """What a run's starter belongs to when a hold opens, for `HoldTerms.starter_in`; none: not known."""
    person = person_behind(started_by)
    if directory is None or person is None:
        return None
    return _as_texts(await directory.memberships(tenant, person_key(person)))


def _as_texts(member: Memberships) -> tuple[str, ...]:
    groups = [f"group:{key}" for key in sorted(member.groups)]
    return (*groups, *(f"role:{key}" for key in sorted(member.roles)))


def snapshot(standing: ActorMemberships, matched: str, now: int) -> dict[str, Any]:
    """What somebody belonged to when they decided, and by what they did: kept with the decision."""
    return {
        "at": to_datetime(now).isoformat(),
        "person": standing.actor.id,
        "matched": matched,
        "groups": sorted(standing.own.groups),
        "roles": sorted(standing.own.roles),
        "rights": sorted(standing.actor.rights),
        "stood_in_for": [
            {"person": each.for_whom, "groups": sorted(each.groups), "roles": sorted(each.roles)}
            for each in standing.others
        ],
    }
