"""Runs whose history went back: a backup that was put in place of the file while workers were alive."""

from __future__ import annotations

from holdfast.store.lost_history import LOST_EVENT, loss_event, loss_message
from holdfast.store.protocols import RunRow
from holdfast.store.sql.sqlite.connect import Cursor, row, rows
from holdfast.store.sql.sqlite.inbox import add_event
from holdfast.store.sql.sqlite.runs import COLUMNS, run_row
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.status import ENDED, PARKED, RunStatus

_STANDS = "SELECT key, head, horizon, inbox_seq, status FROM runs WHERE id = ? AND NOT read_only"
_THERE = "SELECT 1 FROM journal WHERE key = ? AND term = ? AND at = ?"
_VERSION = "SELECT version FROM holds WHERE id = ?"
_SAID = "SELECT 1 FROM events WHERE key BETWEEN ? AND ? AND type = ? AND at >= ? LIMIT 1"
_WAKE = "UPDATE runs SET status = 'running' WHERE key = ?"
_STOP = """
UPDATE runs SET status = ?, error = ?, ended_at = coalesce(ended_at, ?), worker = NULL, lease_until = NULL,
                ready_at = NULL, updated_at = ?, term = max(term, ?) + 1, event_seq = max(event_seq, ?)
WHERE key = ?"""


def stop_lost_run(cur: Cursor, now: int, known: AcknowledgedState) -> RunRow | None:
    """See `Store.lost_history`."""
    found = row(cur, _STANDS, (known.run,))
    if found is None:
        return None
    key, head, horizon, mail, status = found
    base = key << 32
    said = row(cur, _SAID, (base, base | 0xFFFFFFFF, LOST_EVENT, known.at)) is not None
    if said or _has(cur, known, base, horizon, mail):
        return None
    if status in PARKED:
        cur.execute(_WAKE, (key,))
    ends = status if status in ENDED else RunStatus.failed
    cur.execute(_STOP, (ends, loss_message(known, head), now, now, known.term, known.events, key))
    add_event(cur, key, loss_event(known, head, now))
    (stopped,) = rows(cur, f"SELECT {COLUMNS} FROM runs WHERE key = ?", (key,))
    return run_row(stopped)


def _has(cur: Cursor, known: AcknowledgedState, base: int, horizon: int, mail: int) -> bool:
    """A record below or at the horizon was pruned or rewritten: nothing can be said of it."""
    if mail < known.mail:
        return False
    if known.hold is not None:
        hold = row(cur, _VERSION, (known.hold,))
        if hold is None or hold[0] < known.version:
            return False
    place = (base | known.head, known.term, known.at)
    return known.head <= horizon or row(cur, _THERE, place) is not None
