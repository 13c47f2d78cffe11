"""A directory in a file: TOML or JSON (or YAML, where PyYAML is installed), read again when it changes.

Also the in-memory directory of one tenant, with lookups under every name of a person.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from holdfast.errors import DirectoryUnavailableError, SettingsError
from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.base import Circle, Memberships, Person
from holdfast.holds.permissions.assignees import person_key
from holdfast.telemetry import log
from holdfast.types.clock import require_moment
from holdfast.types.ids import DEFAULT_TENANT


class PeopleOfTenant:
    """The directory of one tenant; immutable."""

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

    def unknown_members(self) -> list[str]:
        """Members and substitutes who are not among the people: mistakes in the file."""
        named = [name for circle in (*self.groups.values(), *self.roles.values()) for name in circle.members]
        named += [each.away.substitute for each in self.people.values() if each.away]
        return sorted({name for name in named if self.person(name) is None})

    def _covers(self, person: Person, other: Person, now: int) -> bool:
        away = other.away
        return away is not None and away.is_active(now) and self.person(away.substitute) is person

    def _turned(self, circles: Iterable[Circle]) -> dict[str, frozenset[str]]:
        """Person -> the circles they are in."""
        found: dict[str, set[str]] = {}
        for circle in circles:
            for name in circle.members:
                person = self.person(name)
                if person is not None:
                    found.setdefault(person.id, set()).add(circle.key)
        return {person: frozenset(keys) for person, keys in found.items()}


Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class _Away(msgspec.Struct, forbid_unknown_fields=True):
    substitute: str
    since: Instant | None = None
    until: Instant | None = None


class _Person(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(pattern=r"\S")]
    email: str = ""
    name: str = ""
    active: bool = True
    away: _Away | None = None
    language: str = ""
    zone: str = ""


class _Tenant(msgspec.Struct, forbid_unknown_fields=True):
    people: list[_Person] = []
    groups: dict[str, list[str]] = {}
    roles: dict[str, list[str]] = {}


class _File(_Tenant, forbid_unknown_fields=True):
    """The top level belongs to the default tenant."""

    tenants: dict[str, _Tenant] = {}


class FileDirectory:
    """Raises SettingsError if the file is not valid. If it becomes invalid later, the directory is
    unavailable: no membership counts until the file is corrected."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._stamp = self._stamp_now()
        self._books: dict[str, PeopleOfTenant] | None = _read(self.path)

    async def person(self, tenant: str, ref: str) -> Person | None:
        return self._book(tenant).person(ref)

    async def group(self, tenant: str, key: str) -> Circle | None:
        return self._book(tenant).groups.get(key)

    async def role(self, tenant: str, key: str) -> Circle | None:
        return self._book(tenant).roles.get(key)

    async def memberships(self, tenant: str, ref: str) -> Memberships:
        return self._book(tenant).memberships(ref)

    async def stands_in_for(self, tenant: str, ref: str, now: int) -> Sequence[Person]:
        return self._book(tenant).stands_in_for(ref, now)

    def _book(self, tenant: str) -> PeopleOfTenant:
        stamp = self._stamp_now()
        if stamp != self._stamp:
            self._stamp = stamp
            self._books = self._again()
        if self._books is None:
            # The caller gets no details; the log has the file and what is wrong with it.
            raise DirectoryUnavailableError(
                "the directory file is not valid.", hint="Correct the file; the log names it and the problem."
            )
        return self._books.get(tenant) or PeopleOfTenant()

    def _again(self) -> dict[str, PeopleOfTenant] | None:
        try:
            return _read(self.path)
        except SettingsError as error:
            log.error("no memberships count until the directory file is corrected: %s", error)
            return None

    def _stamp_now(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def _read(path: Path) -> dict[str, PeopleOfTenant]:
    try:
        content = msgspec.convert(_decoded(path), type=_File)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingsError(
            f"the directory {path} cannot be read: {why}.",
            hint="Check HOLDFAST_DIRECTORY: a file, or `store`.",
        ) from error
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError, ValueError) as error:
        raise SettingsError(
            f"the directory {path} is not valid: {error}.",
            hint="It has `people` (each with an id), and `groups` and `roles` (lists of people).",
        ) from error
    tenants = {DEFAULT_TENANT: content, **content.tenants}
    return {name: _book(tenant, f"{path}, tenant {name}") for name, tenant in tenants.items()}


def _decoded(path: Path) -> Any:
    text = path.read_bytes()
    if path.suffix == ".toml":
        return tomllib.loads(text.decode())
    if path.suffix in {".yaml", ".yml"}:
        return _from_yaml(text, path)
    return msgspec.json.decode(text)


def _from_yaml(text: bytes, path: Path) -> Any:
    try:
        return msgspec.yaml.decode(text)
    except ImportError as error:
        raise SettingsError(
            f"reading {path} requires PyYAML.", hint="Install it, or write the directory as TOML or JSON."
        ) from error


def _book(tenant: _Tenant, place: str) -> PeopleOfTenant:
    named = Counter(name for each in tenant.people for name in {person_key(each.id), person_key(each.email)})
    twice = sorted(name for name, count in named.items() if name and count > 1)
    if twice:
        raise SettingsError(
            f"{place}: {', '.join(twice)} is defined twice.", hint="A name or address belongs to one person."
        )
    book = PeopleOfTenant(map(_person, tenant.people), _circles(tenant.groups), _circles(tenant.roles))
    strangers = book.unknown_members()
    if strangers:
        raise SettingsError(
            f"{place}: {', '.join(strangers)}: members or substitutes who are not in `people`.",
            hint="Use the id or address of a person.",
        )
    return book


def _person(entry: _Person) -> Person:
    away = None
    if entry.away is not None:
        given = (entry.away.since, entry.away.until)
        since, until = (None if at is None else require_moment(at, "away") for at in given)
        away = Away(substitute=entry.away.substitute, since=since, until=until)
    return Person(
        id=entry.id,
        email=entry.email,
        name=entry.name,
        active=entry.active,
        away=away,
        language=entry.language,
        zone=entry.zone,
    )


def _circles(entries: dict[str, list[str]]) -> list[Circle]:
    return [Circle(key=key, members=tuple(members)) for key, members in entries.items()]
