"""Live output of a handler: events of its run, written while it runs. They are no records, so the history
does not grow with them."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.checkpoint.json_view import jsonable
from holdfast.drivers.temporal.unavailable import while_unavailable
from holdfast.model.graph import Node
from holdfast.model.position import Exec
from holdfast.model.record_bodies import ChunkBody
from holdfast.runs.events import EMITTED
from holdfast.store.protocols import Store
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId


class LiveOutput:
    """Of one activity."""

    def __init__(self, store: Store, run: RunId) -> None:
        self._store = store
        self._run = run
        self._waiting: list[EventRow] = []
        self._writing: asyncio.Task[None] | None = None

    def add(self, execution: Exec, node: Node, body: ChunkBody) -> None:
        """It is written soon, in the order in which it came."""
        place = {"node": node.id, "scope": execution.scope}
        for kind, data in body.items:
            shown = {"kind": kind, "data": jsonable(data), "visit": execution.visit}
            payload = msgspec.json.encode({**place, **shown, "attempt": execution.attempt})
            self._waiting.append(EventRow(0, self._store.now(), EMITTED, payload))
        if not body.inside:
            # A handler that is entered again does not emit it a second time.
            execution.chunks += len(body.items) - body.lines
            execution.lines += body.lines
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._waiting:
            rows, self._waiting = self._waiting, []
            await while_unavailable(lambda rows=rows: self._store.add_events(self._run, rows))

    async def close(self) -> None:
        """Everything is written when this returns."""
        if self._writing is not None:
            await self._writing
