"""Schedules: when flows are started by the clock. Each write is over the revision that was read."""

from __future__ import annotations

import msgspec

from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.types.schedule import ScheduleRow

_FIELDS = ScheduleRow.__struct_fields__
_SELECT = f"SELECT {', '.join(_FIELDS)} FROM schedules"
_ONE = f"{_SELECT} WHERE tenant = ? AND name = ?"
_SOME = f"""
{_SELECT} WHERE (tenant, name) > (?1, ?2) AND (?3 IS NULL OR tenant = ?3) ORDER BY tenant, name LIMIT ?4"""
_OF_FLOWS = "flow IN (SELECT value FROM json_each(?))"
_DUE = f"{_SELECT} WHERE next_at <= ? AND {_OF_FLOWS} ORDER BY next_at, tenant, name LIMIT ?"
_NEXT = f"SELECT min(next_at) FROM schedules WHERE {_OF_FLOWS}"
_PUT = """
INSERT INTO schedules (tenant, name, flow, body, next_at, last_at, last_run, revision, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?)
ON CONFLICT (tenant, name) DO UPDATE
SET flow = excluded.flow, body = excluded.body, next_at = excluded.next_at, last_at = excluded.last_at,
    last_run = excluded.last_run, revision = revision + 1, updated_at = excluded.updated_at"""
_DROP = "DELETE FROM schedules WHERE tenant = ? AND name = ?"


def put(cur: Cursor, now: int, given: ScheduleRow, expect: int | None) -> ScheduleRow | None:
    known = get(cur, given.tenant, given.name)
    if expect is not None and expect != (0 if known is None else known.revision):
        return None
    what = (given.flow, given.body, given.next_at, given.last_at, given.last_run, now)
    cur.execute(_PUT, (given.tenant, given.name, *what))
    return get(cur, given.tenant, given.name)


def get(cur: Cursor, tenant: str, name: str) -> ScheduleRow | None:
    found = row(cur, _ONE, (tenant, name))
    return None if found is None else _schedule(found)


def select(cur: Cursor, tenant: str | None, after: tuple[str, str], limit: int) -> list[ScheduleRow]:
    return [_schedule(r) for r in rows(cur, _SOME, (*after, tenant, limit))]


def due(cur: Cursor, now: int, flows: tuple[str, ...], limit: int) -> list[ScheduleRow]:
    return [_schedule(r) for r in rows(cur, _DUE, (now, _list(flows), limit))]


def next_due(cur: Cursor, flows: tuple[str, ...]) -> int | None:
    found = row(cur, _NEXT, (_list(flows),))
    return None if found is None else found[0]


def drop(cur: Cursor, _now: int, tenant: str, name: str) -> bool:
    cur.execute(_DROP, (tenant, name))
    return cur.connection.changes() == 1


def _list(flows: tuple[str, ...]) -> str:
    return msgspec.json.encode(flows).decode()


def _schedule(values: Row) -> ScheduleRow:
    return ScheduleRow(**dict(zip(_FIELDS, values, strict=True)))
