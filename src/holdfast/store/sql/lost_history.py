"""Finds runs that lost committed history in a failover or a restored backup, by what was acknowledged."""

from __future__ import annotations

from holdfast.store.lost_history import LOST_EVENT, loss_event, loss_message
from holdfast.store.rows import RunRow
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.run_inbox import add_events
from holdfast.store.sql.runs import COLUMNS, run_row
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.status import ENDED, PARKED, RunStatus

_LOCK = """
SELECT key, head, horizon, inbox_seq, status, @now(?::bigint) FROM @runs
WHERE id = ? AND NOT read_only FOR UPDATE"""
_RECORD = "SELECT 1 FROM @journal WHERE key = ? AND term = ? AND at = ?"
_VERSION = "SELECT version FROM @holds WHERE id = ?"
_REPORTED = "SELECT 1 FROM @events WHERE key BETWEEN ? AND ? AND type = ? AND at >= ? LIMIT 1"
# A waiting run cannot fail: it has to be running first (see the table of transitions).
_WAKE = "UPDATE @runs SET status = 'running' WHERE key = ?"
# Above the lost term too: its worker may still run, and must not pass for a later one. Event numbers start
# above those that readers have seen.
_STOP = """
UPDATE @runs SET status = ?, error = ?, ended_at = coalesce(ended_at, ?::bigint), worker = NULL,
                 lease_until = NULL, ready_at = NULL, updated_at = ?::bigint,
                 term = greatest(term, ?::bigint) + 1, event_seq = greatest(event_seq, ?::bigint)
WHERE key = ?"""
_STOPPED = f"SELECT {COLUMNS} FROM @runs WHERE key = ?"


async def stop_lost_run(conn: Conn, now: int | None, known: AcknowledgedState) -> RunRow | None:
    """See `Store.lost_history`."""
    found = await conn.row(_LOCK, now, known.run)
    if found is None:
        return None
    key, head, horizon, mail, status, at = found
    base = key << 32
    # Several processes may notice the same loss, and an operator may have accepted it already.
    reported = await conn.row(_REPORTED, base, base | 0xFFFF_FFFF, LOST_EVENT, known.at) is not None
    if reported or await _has(conn, known, base, horizon, mail):
        return None
    if status in PARKED:
        await conn.run(_WAKE, key)
    ends = status if status in ENDED else RunStatus.failed
    await conn.run(_STOP, ends, loss_message(known, head), at, at, known.term, known.events, key)
    await add_events(conn, key, [loss_event(known, head, at)])
    stopped = await conn.row(_STOPPED, key)
    return None if stopped is None else run_row(stopped)


async def _has(conn: Conn, known: AcknowledgedState, base: int, horizon: int, mail: int) -> bool:
    """Whether the store still has what it acknowledged."""
    if mail < known.mail:
        return False
    if known.hold is not None:
        hold = await conn.row(_VERSION, known.hold)
        if (0 if hold is None else hold[0]) < known.version:
            return False
    # A record at or below the horizon was pruned or rewritten: it cannot be checked.
    if known.head <= horizon:
        return True
    return await conn.row(_RECORD, base | known.head, known.term, known.at) is not None
