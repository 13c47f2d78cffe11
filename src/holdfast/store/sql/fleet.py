"""The part of the store that knows the workers, the deaths of runs, and how much there is to do."""

from __future__ import annotations

from functools import partial

from holdfast.store.sql import reclaim, statistics
from holdfast.store.sql import fleet__registry
from holdfast.store.sql.access import SqlAccess
from holdfast.types.fleet import Death, FleetFigures, WorkerRow
from holdfast.types.ids import RunId


class SqlFleet(SqlAccess):
    async def announce(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        # It tells live processes apart, and a power cut leaves none: it need not reach the disk at once.
        work = partial(fleet__registry.announce, worker=worker, ttl=ttl)
        return await self._write(work, server_time=True, flushed=False)

    async def workers(self) -> list[WorkerRow]:
        return await self._read(partial(fleet__registry.workers, now=self._server_time()))

    async def dismiss(self, name: str, incarnation: str) -> None:
        work = partial(fleet__registry.dismiss, name=name, incarnation=incarnation)
        await self._write(work, single=True, flushed=False)

    async def deaths(self, run: RunId) -> list[Death]:
        return await self._read(partial(reclaim.deaths, run=run))

    async def figures(self, *, ages: tuple[int, ...]) -> FleetFigures:
        return await self._read(partial(statistics.figures, now=self._server_time(), ages=ages), slow=True)
