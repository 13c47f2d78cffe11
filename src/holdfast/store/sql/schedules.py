"""Schedules: flows that are started by the clock. Each write names the revision that was read."""

from __future__ import annotations

from functools import partial

from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.schedule import ScheduleRow

_FIELDS = ScheduleRow.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_SELECT = f"SELECT {_COLUMNS} FROM @schedules"
_ONE = f"{_SELECT} WHERE tenant = ? AND name = ?"
_SOME = f"""
{_SELECT} WHERE (tenant, name) > (?, ?) AND (?::text IS NULL OR tenant = ?::text)
ORDER BY tenant, name LIMIT ?"""
_DUE = f"{_SELECT} WHERE next_at <= ? AND flow = ANY(?::text[]) ORDER BY next_at, tenant, name LIMIT ?"
_NEXT = "SELECT min(next_at) FROM @schedules WHERE flow = ANY(?::text[])"
_VALUES = """
INSERT INTO @schedules AS known (tenant, name, flow, body, next_at, last_at, last_run, revision, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?)"""
_PUT = f"""{_VALUES}
ON CONFLICT (tenant, name) DO UPDATE
SET flow = excluded.flow, body = excluded.body, next_at = excluded.next_at, last_at = excluded.last_at,
    last_run = excluded.last_run, revision = known.revision + 1, updated_at = excluded.updated_at
RETURNING {_COLUMNS}"""
_PUT_NEW = f"{_VALUES} ON CONFLICT DO NOTHING RETURNING {_COLUMNS}"
_PUT_OVER = f"""
UPDATE @schedules SET flow = ?, body = ?, next_at = ?, last_at = ?, last_run = ?, revision = revision + 1,
                      updated_at = ?
WHERE tenant = ? AND name = ? AND revision = ? RETURNING {_COLUMNS}"""
_DROP = "DELETE FROM @schedules WHERE tenant = ? AND name = ?"


async def put(conn: Conn, now: int, given: ScheduleRow, expect: int | None) -> ScheduleRow | None:
    what = (given.flow, given.body, given.next_at, given.last_at, given.last_run, now)
    if expect:
        found = await conn.row(_PUT_OVER, *what, given.tenant, given.name, expect)
    else:
        found = await conn.row(_PUT if expect is None else _PUT_NEW, given.tenant, given.name, *what)
    return None if found is None else _schedule(found)


async def get(conn: Conn, tenant: str, name: str) -> ScheduleRow | None:
    found = await conn.row(_ONE, tenant, name)
    return None if found is None else _schedule(found)


async def select(conn: Conn, tenant: str | None, after: tuple[str, str], limit: int) -> list[ScheduleRow]:
    return [_schedule(r) for r in await conn.rows(_SOME, *after, tenant, tenant, limit)]


async def due(conn: Conn, now: int, flows: tuple[str, ...], limit: int) -> list[ScheduleRow]:
    return [_schedule(r) for r in await conn.rows(_DUE, now, list(flows), limit)]


async def next_due(conn: Conn, flows: tuple[str, ...]) -> int | None:
    found = await conn.row(_NEXT, list(flows))
    return None if found is None else found[0]


async def drop(conn: Conn, _now: int, tenant: str, name: str) -> bool:
    return await conn.run(_DROP, tenant, name) == 1


def _schedule(values: Row) -> ScheduleRow:
    return ScheduleRow(**dict(zip(_FIELDS, values, strict=True)))


class SqlSchedules(SqlAccess):
    """The part of the store that keeps schedules."""

    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        return await self._write(partial(put, given=row, expect=expect), single=True)

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None:
        return await self._read(partial(get, tenant=tenant, name=name))

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        return await self._read(partial(select, tenant=tenant, after=after, limit=limit))

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        return await self._read(partial(due, now=self.now(), flows=flows, limit=limit))

    async def next_schedule(self, flows: tuple[str, ...]) -> int | None:
        return await self._read(partial(next_due, flows=flows))

    async def drop_schedule(self, tenant: str, name: str) -> bool:
        return await self._write(partial(drop, tenant=tenant, name=name), single=True)
