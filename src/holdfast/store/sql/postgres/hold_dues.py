"""Holds that a sweep has to do something about, each from an index of its own."""

from __future__ import annotations

from holdfast.store.sql.postgres.connect import Conn
from holdfast.store.sql.postgres.holds import COLUMNS, FROM, hold_row
from holdfast.types.hold import Due, HoldRow

_OPEN = "holds.status = 'pending' AND NOT holds.read_only"
# Due -> (the instant, what its index is of).
_DUES = {
    Due.expiry: (
        "holds.expires_at",
        f"{_OPEN} AND holds.paused_at IS NULL AND holds.expires_at IS NOT NULL",
    ),
    Due.reminder: ("holds.remind_at", f"{_OPEN} AND holds.remind_at IS NOT NULL"),
    Due.placed: ("holds.placed_until", f"{_OPEN} AND holds.placed_until IS NOT NULL"),
    Due.resume: (
        "coalesce(holds.resolved_at, holds.closed_at)",
        """holds.status <> 'pending' AND NOT holds.read_only AND holds.resumed_at IS NULL
        AND holds.closed_by IS DISTINCT FROM 'system:engine'
        AND runs.status NOT IN ('completed', 'failed', 'cancelled')""",
    ),
}
_SELECT = """
SELECT {columns} {source} WHERE {of} AND {at} <= ? ORDER BY {at}, holds.number LIMIT ?"""
_FIRST = "(SELECT min({at}) FROM @holds AS holds WHERE {of})"
_WAITING = (Due.expiry, Due.reminder, Due.placed)


async def due(conn: Conn, due: Due, now: int, limit: int) -> list[HoldRow]:
    at, of = _DUES[due]
    sql = _SELECT.format(columns=COLUMNS, source=FROM, at=at, of=of)
    return [hold_row(values) for values in await conn.rows(sql, now, limit)]


async def next_due(conn: Conn) -> int | None:
    firsts = [_FIRST.format(at=at, of=of) for at, of in map(_DUES.__getitem__, _WAITING)]
    found = await conn.row(f"SELECT {', '.join(firsts)}") or ()
    return min((at for at in found if at is not None), default=None)
