"""A directory in the store itself: people, groups and roles as its documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

import msgspec

from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.base import Circle, Memberships, Person
from holdfast.holds.permissions.assignees import person_key
from holdfast.store.protocols import Store
from holdfast.types.document import Document

PERSON, ADDRESS, AWAY, GROUP, ROLE = "person", "address", "away", "group", "role"
PAGE = 500
T = TypeVar("T")


class TableDirectory:
    """The directories of all tenants of a store; `Registrar` changes them. Absences are separate documents,
    because every permission check reads them and few people are away at once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # ------------------------------------------------------------------ the protocol
    async def person(self, tenant: str, ref: str) -> Person | None:
        key = person_key(ref)
        found = await self.get(tenant, PERSON, key, Person)
        if found is None:
            address = await self.get(tenant, ADDRESS, key, str)
            found = None if address is None else await self.get(tenant, PERSON, address, Person)
        if found is None:
            return None
        return msgspec.structs.replace(found, away=await self.get(tenant, AWAY, person_key(found.id), Away))

    async def group(self, tenant: str, key: str) -> Circle | None:
        return await self.get(tenant, GROUP, key, Circle)

    async def role(self, tenant: str, key: str) -> Circle | None:
        return await self.get(tenant, ROLE, key, Circle)

    async def memberships(self, tenant: str, ref: str) -> Memberships:
        person = await self.person(tenant, ref)
        if person is None:
            return Memberships()
        names = {person_key(name) for name in (person.id, person.email) if name}
        groups = [each.key async for each in self.circles(tenant, GROUP) if names & set(each.members)]
        roles = [each.key async for each in self.circles(tenant, ROLE) if names & set(each.members)]
        return Memberships(frozenset(groups), frozenset(roles))

    async def stands_in_for(self, tenant: str, ref: str, now: int) -> Sequence[Person]:
        person = await self.person(tenant, ref)
        found: list[Person] = []
        async for document in self._pages(tenant, AWAY):
            away = msgspec.json.decode(document.body, type=Away)
            if person and away.is_active(now) and away.substitute == person_key(person.id):
                other = await self.person(tenant, document.name)
                found += [other] if other is not None else []
        return found

    # ------------------------------------------------------------------ lists
    async def people(self, tenant: str) -> list[Person]:
        away = {each.name: each async for each in self._pages(tenant, AWAY)}
        found: list[Person] = []
        async for document in self._pages(tenant, PERSON):
            person = msgspec.json.decode(document.body, type=Person)
            absent = away.get(document.name)
            until = None if absent is None else msgspec.json.decode(absent.body, type=Away)
            found.append(msgspec.structs.replace(person, away=until))
        return found

    async def groups(self, tenant: str) -> list[Circle]:
        return [each async for each in self.circles(tenant, GROUP)]

    async def roles(self, tenant: str) -> list[Circle]:
        return [each async for each in self.circles(tenant, ROLE)]

    # ------------------------------------------------------------------ documents
    async def get(self, tenant: str, kind: str, name: str, shape: type[T]) -> T | None:
        kept = await self._store.document(tenant, kind, name)
        return None if kept is None else msgspec.json.decode(kept.body, type=shape)

    async def circles(self, tenant: str, kind: str) -> AsyncIterator[Circle]:
        async for document in self._pages(tenant, kind):
            yield msgspec.json.decode(document.body, type=Circle)

    async def _pages(self, tenant: str, kind: str) -> AsyncIterator[Document]:
        after = ""
        while page := await self._store.documents(tenant, kind, after=after, limit=PAGE):
            for document in page:
                yield document
            after = page[-1].name
