"""Who changed the directory through a server, and when: a person who makes somebody an approver took part in
what that approver decides (`holds.permissions.grantors`).

Kept for each person, membership and departure as the latest change of each caller. An operator with the store
itself is not recorded here, only in the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from holdfast.store.protocols import Store
from holdfast.types.document import Document

KIND: Final = "directory_change"


class DirectoryChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """`at`: the latest change of this caller (microseconds). `names`: addresses that they took from the
    person, and when; for an address, the people whom they took it from."""

    at: int
    names: dict[str, int] = {}


def person_subject(key: str) -> str:
    return f"user:{key}"


def member_subject(kind: str, circle: str, member: str) -> str:
    return f"{kind}:{circle}/{member}"


def departed_subject(kind: str, circle: str, member: str) -> str:
    return f"left:{kind}:{circle}/{member}"


class DirectoryChanges:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, tenant: str, subject: str) -> Mapping[str, DirectoryChange]:
        """The latest change of each caller, by their name."""
        kept = await self._store.document(tenant, KIND, subject)
        return {} if kept is None else msgspec.json.decode(kept.body, type=dict[str, DirectoryChange])

    async def note(self, tenant: str, subject: str, people: Iterable[str], *, lost: str = "") -> None:
        """Written before the change itself: after a crash in between, a change that did not happen only
        makes the rules stricter. `lost`: the address that the person has no longer."""
        callers = tuple(people)
        while callers:
            kept = await self._store.document(tenant, KIND, subject)
            known = {} if kept is None else msgspec.json.decode(kept.body, type=dict[str, DirectoryChange])
            now = self._store.now()
            for name in callers:
                before = known.get(name, DirectoryChange(now))
                names = {**before.names, lost: now} if lost else before.names
                known[name] = DirectoryChange(now, names)
            document = Document(tenant=tenant, kind=KIND, name=subject, body=msgspec.json.encode(known))
            if await self._store.put_document(document, expect=0 if kept is None else kept.revision):
                return
