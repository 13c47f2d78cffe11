"""The part of the PostgreSQL store that is about who works, who died, and how much there is to do."""

from __future__ import annotations

from functools import partial

from holdfast.store.protocols import Claim, ClaimRequest
from holdfast.store.sql.postgres import figuring, reclaim, registry
from holdfast.store.sql.postgres.clock import ServerClock
from holdfast.store.sql.postgres.pool import PostgresPools
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death, FleetFigures, WorkerRow
from holdfast.types.ids import RunId


class PostgresFleet:
    """What it needs of the store: its connections and its time."""

    _pools: PostgresPools
    _clock: ServerClock

    async def announce(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        work = partial(registry.announce, now=self._clock.given, worker=worker, ttl=ttl)
        return await self._pools.write(work)

    async def workers(self) -> list[WorkerRow]:
        return await self._pools.read(partial(registry.workers, now=self._clock.given))

    async def dismiss(self, name: str, incarnation: str) -> None:
        await self._pools.write_at_once(partial(registry.dismiss, name=name, incarnation=incarnation))

    async def deaths(self, run: RunId) -> list[Death]:
        return await self._pools.read(partial(reclaim.deaths, run=run))

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        work = partial(reclaim.claim_dead, now=self._clock.given, want=want, event=event)
        return await self._pools.write(work)

    async def figures(self, *, ages: tuple[int, ...]) -> FleetFigures:
        return await self._pools.read(partial(figuring.figures, now=self._clock.given, ages=ages))
