"""The part of the memory store that is about schedules."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.store.memory.tables import MemoryTables
from holdfast.types.schedule import ScheduleRow


class MemorySchedules(MemoryTables):
    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        place = (row.tenant, row.name)
        with self._lock:
            known = self._schedules.get(place)
            revision = 0 if known is None else known.revision
            if expect is not None and expect != revision:
                return None
            kept = replace(row, body=bytes(row.body), revision=revision + 1, updated_at=self._now())
            self._schedules[place] = kept
            return kept

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None:
        with self._lock:
            return self._schedules.get((tenant, name))

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        with self._lock:
            found = sorted(place for place in self._schedules if place > after)
            wanted = [place for place in found if tenant is None or place[0] == tenant]
            return [self._schedules[place] for place in wanted[:limit]]

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        with self._lock:
            now = self._now()
            due = [
                (row.next_at, place)
                for place, row in self._schedules.items()
                if row.flow in flows and row.next_at is not None and row.next_at <= now
            ]
            return [self._schedules[place] for _, place in sorted(due)[:limit]]

    async def next_schedule(self, flows: tuple[str, ...]) -> int | None:
        with self._lock:
            found = (row.next_at for row in self._schedules.values() if row.flow in flows)
            return min((at for at in found if at is not None), default=None)

    async def drop_schedule(self, tenant: str, name: str) -> bool:
        with self._lock:
            return self._schedules.pop((tenant, name), None) is not None
