"""A directory in memory: the people, groups and roles of one tenant, looked up under every name they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.holds.directory.base import Circle, Memberships, Person
from holdfast.holds.permissions.assignees import person_key


class Book:
    """Of one tenant; it never changes."""

    def __init__(
        self, people: Iterable[Person] = (), groups: Iterable[Circle] = (), roles: Iterable[Circle] = ()
    ) -> None:
        self.people = {each.id: each for each in people}
        self.groups = {each.key: each for each in groups}
        self.roles = {each.key: each for each in roles}
        by_address = {person_key(each.email): each for each in self.people.values() if each.email}
        self._named = by_address | {person_key(name): each for name, each in self.people.items()}
        self._groups_of = self._turned(self.groups.values())
        self._roles_of = self._turned(self.roles.values())

    def person(self, ref: str) -> Person | None:
        return self._named.get(person_key(ref))

    def memberships(self, ref: str) -> Memberships:
        person = self.person(ref)
        if person is None:
            return Memberships()
        none = frozenset[str]()
        return Memberships(self._groups_of.get(person.id, none), self._roles_of.get(person.id, none))

    def stands_in_for(self, ref: str, now: int) -> Sequence[Person]:
        person = self.person(ref)
        return [each for each in self.people.values() if person and self._covers(person, each, now)]

    def strangers(self) -> list[str]:
        """Members and substitutes whom nobody knows: slips of whoever wrote it."""
        named = [name for circle in (*self.groups.values(), *self.roles.values()) for name in circle.members]
        named += [each.away.substitute for each in self.people.values() if each.away]
        return sorted({name for name in named if self.person(name) is None})

    def _covers(self, person: Person, other: Person, now: int) -> bool:
        away = other.away
        return away is not None and away.lasts(now) and self.person(away.substitute) is person

    def _turned(self, circles: Iterable[Circle]) -> dict[str, frozenset[str]]:
        """Person -> the circles they are in."""
        found: dict[str, set[str]] = {}
        for circle in circles:
            for name in circle.members:
                person = self.person(name)
                if person is not None:
                    found.setdefault(person.id, set()).add(circle.key)
        return {person: frozenset(keys) for person, keys in found.items()}
