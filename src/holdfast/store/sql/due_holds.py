"""Holds that a sweep has to act on, each kind from its own index."""

from __future__ import annotations

from holdfast.store.sql.connection import Conn
from holdfast.store.sql.hold_rows import COLUMNS, hold_row
from holdfast.types.hold import Due, HoldRow

_OPEN = "holds.status = 'pending' AND NOT holds.read_only"
# Due -> (its index, the instant, the rows of the index).
_DUES = {
    Due.expiry: (
        "holds_expiring",
        "holds.expires_at",
        f"{_OPEN} AND holds.paused_at IS NULL AND holds.expires_at IS NOT NULL",
    ),
    Due.reminder: ("holds_reminding", "holds.remind_at", f"{_OPEN} AND holds.remind_at IS NOT NULL"),
    Due.placed: ("holds_placed", "holds.placed_until", f"{_OPEN} AND holds.placed_until IS NOT NULL"),
    # Decided or closed, but the run has not taken it in. What the run closed itself it need not be told.
    Due.resume: (
        "holds_to_resume",
        "coalesce(holds.resolved_at, holds.closed_at)",
        """holds.status <> 'pending' AND NOT holds.read_only AND holds.resumed_at IS NULL
        AND holds.closed_by IS DISTINCT FROM 'system:engine'
        AND runs.status NOT IN ('completed', 'failed', 'cancelled')""",
    ),
}
_SELECT = """
SELECT {columns} FROM @holds[{index}] AS holds CROSS JOIN @runs AS runs
WHERE runs.key = holds.run_key AND {of} AND {at} <= ? ORDER BY {at}, holds.number LIMIT ?"""
# Not min(): MariaDB, whose indexes have the rows of all holds, would read every hold that waits.
_FIRST = "(SELECT {at} FROM @holds[{index}] AS holds WHERE {of} ORDER BY {at} LIMIT 1)"
_WAITING = (Due.expiry, Due.reminder, Due.placed)


async def due(conn: Conn, due: Due, now: int, limit: int) -> list[HoldRow]:
    index, at, of = _DUES[due]
    sql = _SELECT.format(columns=COLUMNS, index=index, at=at, of=of)
    return [hold_row(values) for values in await conn.rows(sql, now, limit)]


async def next_due(conn: Conn) -> int | None:
    firsts = [_FIRST.format(index=index, at=at, of=of) for index, at, of in map(_DUES.__getitem__, _WAITING)]
    found = await conn.row(f"SELECT {', '.join(firsts)}") or ()
    return min((at for at in found if at is not None), default=None)
