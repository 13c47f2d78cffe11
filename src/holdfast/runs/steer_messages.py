"""Messages of people to an agent that is at work: kept beside the run until a conversation has taken them.

A conversation marks a message as its own, records it, and then removes it: each is delivered once, to the
conversation that took it, also after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from holdfast.store.protocols import Store
from holdfast.types.document import Document
from holdfast.types.ids import RunId

if TYPE_CHECKING:
    from holdfast.runs.context.context import Context

KIND: Final = "steer"
MOST: Final = 100
"""Messages that wait for one run."""


def agent_place(scope: str, node: str, visit: int) -> str:
    """Names one visit of a node whose agent gets messages."""
    return f"{scope}{node}#{visit}"


def place_of(ctx: Context) -> str:
    return agent_place(ctx.scope, ctx.node, ctx.visit)


class SteerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`taken_by`: the conversation that gets it; empty while it waits. `stage`: the node that it is for;
    empty for any. `agents`: the places of those that were at work when it was sent; empty in messages of
    older versions."""

    id: str
    text: str
    by: str
    at: int
    taken_by: str = ""
    stage: str = ""
    agents: tuple[str, ...] = ()

    def is_for(self, taker: str, place: str) -> bool:
        if self.taken_by:
            return self.taken_by == taker
        node = place.rpartition("#")[0].rpartition("/")[2]
        return place in self.agents if self.agents else self.stage in ("", node)


class SteerMessages:
    """Those of one run, the oldest first."""

    def __init__(self, store: Store, tenant: str, run: RunId) -> None:
        self._store = store
        self._tenant = tenant
        self._run = run

    async def put(self, text: str, by: str, stage: str = "", agents: Iterable[str] = ()) -> SteerMessage:
        now = self._store.now()
        made = SteerMessage(
            id=f"{now:020}-{uuid4().hex[:12]}", text=text, by=by, at=now, stage=stage, agents=tuple(agents)
        )
        await self._store.put_document(self._document(made), expect=0)
        return made

    def _document(self, message: SteerMessage) -> Document:
        body = msgspec.json.encode(message)
        return Document(tenant=self._tenant, kind=KIND, name=f"{self._run}/{message.id}", body=body)

    async def all(self) -> list[tuple[SteerMessage, int]]:
        """With their revisions."""
        found = await self._store.documents(self._tenant, KIND, prefix=f"{self._run}/", limit=MOST)
        return [(msgspec.json.decode(each.body, type=SteerMessage), each.revision) for each in found]

    async def waiting(self, taker: str, place: str) -> bool:
        return any(each.is_for(taker, place) for each, _ in await self.all())

    async def late(self, place: str) -> list[SteerMessage]:
        """Those that only the agent at this place would have got, which is not at work any more."""
        return [each for each, _ in await self.all() if each.agents == (place,) and not each.taken_by]

    async def take(self, taker: str, place: str) -> list[SteerMessage]:
        """Those that it has taken before too, unless they were removed. `place`: the taker's."""
        found: list[SteerMessage] = []
        for each, revision in await self.all():
            if not each.is_for(taker, place):
                continue
            mine = msgspec.structs.replace(each, taken_by=taker)
            if each.taken_by == taker:
                found.append(each)
            # Another conversation of the run may be faster.
            elif not each.taken_by and await self._store.put_document(self._document(mine), expect=revision):
                found.append(mine)
        return found

    async def remove(self, *ids: str) -> None:
        for each in ids:
            await self._store.drop_document(self._tenant, KIND, f"{self._run}/{each}")

    async def remove_all(self) -> None:
        while found := await self.all():
            await self.remove(*(each.id for each, _ in found))
