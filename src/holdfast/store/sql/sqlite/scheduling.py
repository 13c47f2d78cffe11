"""The part of the SQLite store that is about schedules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holdfast.store.sql.sqlite import schedules
from holdfast.store.sql.sqlite.readers import SqliteReaders
from holdfast.store.sql.sqlite.writer import SqliteWriter
from holdfast.types.schedule import ScheduleRow


class SqliteSchedules:
    """What it needs of the store: its clock, its one way to write, its readers."""

    _now: Callable[[], int]
    _writer: SqliteWriter
    _readers: SqliteReaders

    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        return await self._writer.write(partial(schedules.put, given=row, expect=expect))

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None:
        return self._readers.read(partial(schedules.get, tenant=tenant, name=name))

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        return self._readers.read(partial(schedules.select, tenant=tenant, after=after, limit=limit))

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        return self._readers.read(partial(schedules.due, now=self._now(), flows=flows, limit=limit))

    async def next_schedule(self, flows: tuple[str, ...]) -> int | None:
        return self._readers.read(partial(schedules.next_due, flows=flows))

    async def drop_schedule(self, tenant: str, name: str) -> bool:
        return await self._writer.write(partial(schedules.drop, tenant=tenant, name=name))
