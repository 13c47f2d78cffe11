"""The people who are looking at a hold now, by heartbeats.

One document of the store per viewer (kind `presence`), so that every server of the same store shows the same
(ADR 42). Presence is not part of the hold: it is not in the history or the audit.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.holds.permissions.assignees import person_key
from holdfast.store.hold_protocols import Documents
from holdfast.types.clock import MICROS
from holdfast.types.document import Document
from holdfast.types.terms import Actor

KIND: Final = "presence"
TTL: Final = 30 * MICROS
MOST: Final = 100
"""Maximum number of viewers that are listed for one hold."""


class HoldViewer(msgspec.Struct, frozen=True, kw_only=True):
    """`editing`: they are filling the form in."""

    person: str
    since: int
    until: int
    editing: bool = False


class HoldPresence:
    def __init__(self, store: Documents) -> None:
        self._store = store

    async def beat(self, actor: Actor, hold: str, now: int, *, editing: bool) -> HoldViewer:
        """Renew a viewer's presence."""
        name = _name(hold, actor)
        kept = await self._store.document(actor.tenant, KIND, name)
        before = None if kept is None else msgspec.json.decode(kept.body, type=HoldViewer)
        # After a pause the person has come back: they look since now.
        since = before.since if before is not None and before.until > now else now
        look = HoldViewer(person=actor.id, since=since, until=now + TTL, editing=editing)
        body = msgspec.json.encode(look)
        await self._store.put_document(Document(tenant=actor.tenant, kind=KIND, name=name, body=body))
        return look

    async def leave(self, actor: Actor, hold: str) -> None:
        await self._store.drop_document(actor.tenant, KIND, _name(hold, actor))

    async def viewers(self, tenant: str, hold: str, now: int) -> list[HoldViewer]:
        """The viewers, the earliest first. Expired entries are deleted."""
        found: list[HoldViewer] = []
        for document in await self._store.documents(tenant, KIND, prefix=f"{hold}/", limit=MOST):
            look = msgspec.json.decode(document.body, type=HoldViewer)
            if look.until > now:
                found.append(look)
            else:
                await self._store.drop_document(tenant, KIND, document.name)
        return sorted(found, key=lambda each: (each.since, each.person))


def _name(hold: str, actor: Actor) -> str:
    return f"{hold}/{person_key(actor.id)}"
