"""The part of the PostgreSQL store that is about schedules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holdfast.store.sql.postgres import schedules
from holdfast.store.sql.postgres.pool import PostgresPools
from holdfast.types.schedule import ScheduleRow


class PostgresSchedules:
    """What it needs of the store: its time and its connections."""

    now: Callable[[], int]
    _pools: PostgresPools

    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        work = partial(schedules.put, now=self.now(), given=row, expect=expect)
        return await self._pools.write_at_once(work)

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None:
        return await self._pools.read(partial(schedules.get, tenant=tenant, name=name))

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        return await self._pools.read(partial(schedules.select, tenant=tenant, after=after, limit=limit))

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        return await self._pools.read(partial(schedules.due, now=self.now(), flows=flows, limit=limit))

    async def next_schedule(self, flows: tuple[str, ...]) -> int | None:
        return await self._pools.read(partial(schedules.next_due, flows=flows))

    async def drop_schedule(self, tenant: str, name: str) -> bool:
        return await self._pools.write_at_once(partial(schedules.drop, tenant=tenant, name=name))
