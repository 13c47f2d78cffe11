"""The part of the SQLite store that is about who works, who died, and how much there is to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from holdfast.store.protocols import Claim, ClaimRequest
from holdfast.store.sql.sqlite import figuring, reclaim, registry
from holdfast.store.sql.sqlite.readers import SqliteReaders
from holdfast.store.sql.sqlite.writer import SqliteWriter
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death, FleetFigures, WorkerRow
from holdfast.types.ids import RunId


class SqliteFleet:
    """What it needs of the store: its clock, its one way to write, its readers."""

    _now: Callable[[], int]
    _writer: SqliteWriter
    _readers: SqliteReaders

    async def announce(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        # It tells live processes apart, and a power cut leaves none: nobody waits for the disk.
        work = partial(registry.announce, worker=worker, ttl=ttl)
        return await self._writer.write(work, flushed=False)

    async def workers(self) -> list[WorkerRow]:
        return self._readers.read(partial(registry.workers, now=self._now()))

    async def dismiss(self, name: str, incarnation: str) -> None:
        work = partial(registry.dismiss, name=name, incarnation=incarnation)
        await self._writer.write(work, flushed=False)

    async def deaths(self, run: RunId) -> list[Death]:
        return self._readers.read(partial(reclaim.deaths, run=run))

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        return await self._writer.write(partial(reclaim.claim_dead, want=want, event=event))

    async def figures(self, *, ages: tuple[int, ...]) -> FleetFigures:
        # In a thread: with a long line it takes a tenth of a second, and others use the loop.
        query = partial(figuring.figures, now=self._now(), ages=ages)
        return await asyncio.to_thread(self._readers.read, query)
