"""Looks up who gave somebody their place in a decision: absences, delegations, assignments, and changes of
the directory while the hold was open or before a run of the same caller asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.directory.base import Directory
from holdfast.holds.directory.changes import (
    DirectoryChange,
    DirectoryChanges,
    departed_subject,
    member_subject,
    person_subject,
)
from holdfast.holds.permissions.actor import ActorMemberships, Capacity, capacities_of
from holdfast.holds.permissions.assignees import DELEGATED, parse_assignee, person_key
from holdfast.holds.permissions.exclusions import WHO, PermissionFacts, starters_of
from holdfast.holds.permissions.vote_count import voters_of
from holdfast.holds.queries.audit import records_of
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Assignee

Grantors = dict[str, list[Capacity]]
MAILBOX: Final = frozenset({"link", "mail_reply"})
"""Credentials that prove access to a mailbox, and not who reads it."""


class GrantorLookup:
    def __init__(self, store: Store, directory: Directory | None, deployments: Deployments) -> None:
        self._store = store
        self._directory = directory
        self._deployments = deployments
        self._changes = DirectoryChanges(store)

    async def add(self, past: PermissionFacts, standing: ActorMemberships, row: HoldRow) -> PermissionFacts:
        """The facts with everybody who gave this actor a place on this hold."""
        if standing.actor.is_system:
            return past
        found: Grantors = defaultdict(list)
        seats = (*voters_of(row), *(parse_assignee(text) for text in row.terms.approval.veto))
        await self._absences(found, standing)
        await self._delegations(found, row, seats)
        await self._assignments(found, row)
        await self._addresses(found, standing, row, seats, starters_of(row, past))
        await self._directory_changes(found, standing, row, seats, starters_of(row, past))
        await self._departures_behind(found, standing, row, starters_of(row, past))
        if not found:
            return past
        return msgspec.structs.replace(past, grantors={name: tuple(each) for name, each in found.items()})

    async def _absences(self, found: Grantors, standing: ActorMemberships) -> None:
        for capacity in standing.others:
            makers = await self._capacities(capacity.made_by, standing.actor.tenant)
            for name in capacity.people if makers else ():
                found[f"substitute:{name}"] += makers

    async def _delegations(self, found: Grantors, row: HoldRow, seats: Iterable[Assignee]) -> None:
        for seat in seats:
            if seat.type == DELEGATED and seat.value:
                held = await self._deployments.delegation(row.tenant, seat.value)
                makers = () if held is None else await self._capacities(held.made_by, row.tenant)
                if makers:
                    found[f"seat:{seat}"] += makers

    async def _assignments(self, found: Grantors, row: HoldRow) -> None:
        """Without a directory an assignee is only a name, which may be a second mailbox of the person who
        wrote it. With one, the assignee is somebody whom it knows."""
        seat = Assignee(row.assignee_type, row.assignee_value)
        if self._directory is not None or row.epoch <= 1 or str(seat) in row.terms.approval.of:
            return
        for each in await records_of(self._store, row.tenant, hold=row.id):
            data: dict[str, Any] = msgspec.json.decode(each.data) if each.action == "reassigned" else {}
            if data.get("to") == str(seat):
                found[f"seat:{seat}"] += await self._capacities(
                    (each.actor, *data.get("took_part", ())), row.tenant
                )

    async def _addresses(
        self,
        found: Grantors,
        standing: ActorMemberships,
        row: HoldRow,
        seats: Iterable[Assignee],
        starters: frozenset[str],
    ) -> None:
        """The same for names that a deployment or a policy of the store gave. A link and a mail prove nothing
        but a mailbox: who starts a run and gives the address may be its reader."""
        if self._directory is not None:
            return
        mailbox = standing.actor.auth_method in MAILBOX
        filled = {str(parse_assignee(name)) for name in row.terms.filled} if mailbox else set[str]()
        for seat in seats:
            writers = (*row.terms.named_by.get(str(seat), ()), *(starters if str(seat) in filled else ()))
            if writers:
                found[f"seat:{seat}"] += await self._capacities(writers, row.tenant)

    async def _directory_changes(
        self,
        found: Grantors,
        standing: ActorMemberships,
        row: HoldRow,
        seats: Iterable[Assignee],
        starters: frozenset[str],
    ) -> None:
        tenant = row.tenant
        names = {name for each in standing.capacities for name in each.people} | standing.known_names
        for name in sorted(names):
            subject = person_subject(name)
            changes = await self._changes.of(tenant, subject)
            found[subject] += await self._callers(changes, row, starters)
            former = await self._former_names(name, changes, row, starters)
            if former:
                found[subject] += [Capacity(people=frozenset({name, *former}))]
                found[subject] += await self._capacities(sorted(former), tenant)
            for seat in seats:
                if seat.type in ("group", "role"):
                    joined = await self._changes.of(tenant, member_subject(seat.type, seat.value, name))
                    found[f"{seat}/{name}"] += await self._callers(joined, row, starters)
            for each in (name, *sorted(former)):
                found[subject] += await self._departures(each, row, starters)
        for subject in [subject for subject, each in found.items() if not each]:
            del found[subject]

    async def _former_names(
        self, name: str, changes: Mapping[str, DirectoryChange], row: HoldRow, starters: frozenset[str]
    ) -> set[str]:
        """Names that the person lost while the hold was open, or before their run asked, are still theirs for
        this hold; so is the person whose address they have now."""
        known, left = {name}, [changes]
        while left:
            for change in left.pop().values():
                for lost, at in change.names.items():
                    key = person_key(lost)
                    if key not in known and (at >= row.created_at or {*known, key} & starters):
                        known.add(key)
                        left.append(await self._changes.of(row.tenant, person_subject(key)))
        return known - {name}

    async def _callers(
        self, changes: Mapping[str, DirectoryChange], row: HoldRow, starters: frozenset[str]
    ) -> list[Capacity]:
        """Who changed it while this hold was open, or before a run of theirs asked."""
        counted: list[Capacity] = []
        for name, change in changes.items():
            (who,) = await self._capacities((name,), row.tenant)
            if change.at >= row.created_at or who.people & starters:
                counted.append(who)
        return counted

    async def _departures(self, name: str, row: HoldRow, starters: frozenset[str]) -> list[Capacity]:
        """An excluded group that the person left since: they cannot lift their own exclusion."""
        left: dict[str, set[str]] = {"group": set(), "role": set()}
        for word in (*row.terms.approval.exclude, *row.terms.excluded):
            circle = None if word in WHO else parse_assignee(word)
            if circle is not None and circle.type in left:
                changes = await self._changes.of(
                    row.tenant, departed_subject(circle.type, circle.value, name)
                )
                if await self._callers(changes, row, starters):
                    left[circle.type].add(circle.value)
        if not any(left.values()):
            return []
        person = frozenset({name})
        return [Capacity(people=person, groups=frozenset(left["group"]), roles=frozenset(left["role"]))]

    async def _departures_behind(
        self, found: Grantors, standing: ActorMemberships, row: HoldRow, starters: frozenset[str]
    ) -> None:
        """The same for everybody behind the actor: who made their credential or gave them their place."""
        people = (*standing.makers, *(each for capacities in found.values() for each in capacities))
        names = {name for each in people for name in each.people}
        left = [each for name in sorted(names) for each in await self._departures(name, row, starters)]
        for name in sorted(standing.known_names) if left else ():
            found.setdefault(person_subject(name), []).extend(left)

    async def _capacities(self, names: Iterable[str], tenant: str) -> tuple[Capacity, ...]:
        return await capacities_of(dict.fromkeys(names), tenant, self._directory)
