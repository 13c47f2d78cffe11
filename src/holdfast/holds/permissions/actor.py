"""An actor's memberships: their names, groups, roles and delegations, and the people they substitute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.base import Delegations, Directory, Memberships, Person
from holdfast.holds.permissions.assignees import DELEGATED, person_key
from holdfast.telemetry import log
from holdfast.types.clock import to_datetime
from holdfast.types.schedule import person_behind
from holdfast.types.terms import MANAGE, RESOLVE, Actor, Assignee, people_in

NO_PEOPLE: Final = ("service:", "agent:", "system:", "policy:")
"""Prefixes of actors that are not in a directory of people."""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """A capacity in which an actor may act: `people` are the names of one person, by id and by address."""

    people: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    delegations: frozenset[str] = frozenset()
    for_whom: str | None = None  # the person who is away; None: the actor
    made_by: tuple[str, ...] = ()  # who set the absence

    def fits(self, assignee: Assignee) -> bool:
        names = {"user": self.people, "group": self.groups, "role": self.roles, DELEGATED: self.delegations}
        return assignee.value in names.get(assignee.type, frozenset())


class ActorMemberships(msgspec.Struct, frozen=True, kw_only=True):
    """`barred`: why this person has no rights at all, whatever their credential says. `silence`: why their
    memberships are not known. `makers`: the other people of the credential's chain, each under all their
    names; they only ever restrict what the actor may do."""

    actor: Actor
    own: Capacity = Capacity()
    others: tuple[Capacity, ...] = ()
    makers: tuple[Capacity, ...] = ()
    barred: str | None = None
    silence: str | None = None

    @property
    def capacities(self) -> tuple[Capacity, ...]:
        return (self.own, *self.others)

    @property
    def known_names(self) -> frozenset[str]:
        """Of the actor, without those whom they substitute."""
        return self.own.people | {person_key(self.actor.id)}

    def has(self, right: str) -> bool:
        """The right to manage includes the right to resolve."""
        rights = self.actor.rights
        return right in rights or (right == RESOLVE and MANAGE in rights)


async def memberships_for(
    actor: Actor, directory: Directory | None, now: int, *, delegations: Delegations | None = None
) -> ActorMemberships:
    """With a directory, its present content counts, not the groups in the credential. While it is
    unavailable, no membership counts."""
    found = await _memberships(actor, directory, now, delegations)
    others = [name for name in people_in(actor.chain) if person_key(name) not in found.known_names]
    if not others:
        return found
    return msgspec.structs.replace(found, makers=await capacities_of(others, actor.tenant, directory))


async def capacities_of(
    names: Iterable[str], tenant: str, directory: Directory | None
) -> tuple[Capacity, ...]:
    """What is known of people who took part, for exclusions. Somebody whom the directory does not know, or
    while it is unavailable, is known by the given name alone."""
    found: list[Capacity] = []
    for name in names:
        key = person_key(name)
        try:
            known = await capacity_named(key, tenant, directory)
        except DirectoryUnavailableError:
            known = None
        found.append(Capacity(people=frozenset({key})) if known is None else known)
    return tuple(found)


async def _memberships(
    actor: Actor, directory: Directory | None, now: int, delegations: Delegations | None
) -> ActorMemberships:
    if directory is None:
        # Without a directory the groups of the credential are the only ones that are known.
        own = Capacity(people=frozenset({person_key(actor.id)}), groups=actor.groups, roles=actor.roles)
        return ActorMemberships(actor=actor, own=await _with_delegations(own, actor.tenant, now, delegations))
    try:
        return await _looked_up(actor, directory, now, delegations)
    except DirectoryUnavailableError as error:
        # No exception: rights of the credential still count. The
        # refusal explains the missing memberships by `silence`.
        log.error("no memberships count while the directory is unavailable: %s", error)
        return ActorMemberships(actor=actor, silence=error.message.rstrip("."))


async def _looked_up(
    actor: Actor, directory: Directory, now: int, delegations: Delegations | None
) -> ActorMemberships:
    tenant = actor.tenant
    person = await directory.person(tenant, person_key(actor.id))
    if person is None:
        # A person who left keeps the rights of a valid credential, but not what was assigned to them.
        if actor.id.startswith(NO_PEOPLE):
            return ActorMemberships(actor=actor, own=Capacity(people=frozenset({actor.id})))
        return ActorMemberships(actor=actor, silence=f"{actor.id} is not in the directory")
    if not person.active:
        return ActorMemberships(actor=actor, barred=f"{actor.id} is not active")
    own = await _capacity(person, directory, tenant, now, delegations)
    others = [
        await _capacity(
            each,
            directory,
            tenant,
            now,
            delegations,
            for_whom=f"user:{each.id}",
            made_by=() if each.away is None else each.away.made_by,
        )
        # One level only: the substitute of a substitute does not act for the absent person.
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
    made_by: tuple[str, ...] = (),
) -> Capacity:
    member = await directory.memberships(tenant, person.id)
    capacity = Capacity(
        people=names_of(person), groups=member.groups, roles=member.roles, for_whom=for_whom, made_by=made_by
    )
    return await _with_delegations(capacity, tenant, now, delegations)


async def capacity_named(
    name: str, tenant: str, directory: Directory | None, *, belonging: bool = True
) -> Capacity | None:
    """The capacity of a person whom a hold names, under all their names; None: unknown. `belonging`: also
    their memberships, which cost more to look up."""
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
    """Every name under which a hold can be assigned to the person."""
    return frozenset(person_key(name) for name in (person.id, person.email) if name)


def names_as(standing: ActorMemberships, for_whom: str | None) -> tuple[str, ...]:
    """All names of the actor, and of the person they substitute."""
    acting = [each.people for each in standing.others if each.for_whom == for_whom]
    return tuple(sorted(standing.own.people.union(*acting)))


def assignees_of(standing: ActorMemberships) -> tuple[tuple[str, str], ...]:
    """The actor's assignees, as in a filter of holds: (type, value)."""
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
    """The memberships of a run's starter when a hold opens, for `HoldTerms.starter_in`; None: not known."""
    person = person_behind(started_by)
    # None and not empty: "not known" is stored, and then no membership of the starter counts.
    if directory is None or person is None:
        return None
    return _as_texts(await directory.memberships(tenant, person_key(person)))


def _as_texts(member: Memberships) -> tuple[str, ...]:
    groups = [f"group:{key}" for key in sorted(member.groups)]
    return (*groups, *(f"role:{key}" for key in sorted(member.roles)))


def snapshot(standing: ActorMemberships, matched: str, now: int) -> dict[str, Any]:
    """The actor's memberships when they decided, and the one that counted: stored with the decision."""
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
