"""The part of the PostgreSQL store that is about schedules."""

from __future__ import annotations

from holdfast.types.schedule import ScheduleRow


class Scheduling:
    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        raise NotImplementedError

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None:
        raise NotImplementedError

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        raise NotImplementedError

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        raise NotImplementedError

    async def drop_schedule(self, tenant: str, name: str) -> bool:
        raise NotImplementedError
