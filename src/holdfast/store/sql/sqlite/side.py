"""What a record changes outside the journal, in the record's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import StoreError
from holdfast.store.sql.sqlite import memories, outbox, run_holds
from holdfast.store.sql.sqlite.connect import Cursor, row
from holdfast.store.sql.sqlite.run_holds import SqliteRunRef
from holdfast.types.record import Refusal, Side, VersionChange
from holdfast.types.status import ENDED, RunStatus, may_follow

_OPEN_TIMER = "INSERT INTO timers (run_key, token, fire_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_CLOSE_TIMER = "DELETE FROM timers WHERE run_key = ? AND token = ?"
_CLOSE_ALL_TIMERS = "DELETE FROM timers WHERE run_key = ?"
_TAKE = "UPDATE inbox SET done = 1 WHERE id = ? AND run_key = ?"
_REFER = "INSERT INTO blob_refs (run_key, digest) VALUES (?, ?) ON CONFLICT DO NOTHING"
_END = """
UPDATE runs SET status = ?, error = coalesce(?, error), ended_at = ?, worker = NULL, lease_until = NULL,
                ready_at = NULL
WHERE key = ?"""
_MIGRATE = "UPDATE runs SET version = ?, code = ?, migrated = ? WHERE key = ?"
_MOVE_HOLD = "UPDATE holds SET scope = ?, node = ? WHERE id = ? AND run_key = ?"
_COUNT_MOVE = "UPDATE holds SET version = version + 1 WHERE id = ? AND status = 'pending'"
_CHANGE_STATUS = "UPDATE runs SET status = coalesce(?, status), error = coalesce(?, error) WHERE key = ?"


def side_refusal(cur: Cursor, key: int, sides: Sequence[Side], status: str) -> Refusal | None:
    """Why the sides could not be applied. Asked before anything of the run is written.

    Raises StoreError for a change of status that no run may make: that is a mistake in the caller.
    """
    wanted = [number for side in sides for number in side.inbox_done]
    if len(set(wanted)) != len(wanted) or not all(_is_waiting(cur, key, number) for number in wanted):
        return Refusal.inbox_taken
    if missing_blob(cur, sides) is not None:
        return Refusal.put_blobs_again
    check_transitions(status, sides)
    return None


def missing_blob(cur: Cursor, sides: Sequence[Side]) -> bytes | None:
    """The first blob that is named but not there, or condemned (D-37)."""
    for side in sides:
        for digest in side.blobs:
            found = row(cur, "SELECT condemned FROM blobs WHERE digest = ?", (digest,))
            if found is None or found[0]:
                return digest
    return None


def check_transitions(status: str, sides: Sequence[Side]) -> None:
    for new in [side.status for side in sides if side.status is not None]:
        if not may_follow(RunStatus(status), new):
            raise StoreError(f"A run that is {status} cannot become {new}.")
        status = new


def apply_side(cur: Cursor, now: int, run: SqliteRunRef, side: Side) -> None:
    key = run.key
    refer(cur, key, side)
    run_holds.apply(cur, now, run, side)
    _apply_timers(cur, key, side)
    for number in side.inbox_done:
        cur.execute(_TAKE, (number, key))
    for memory in side.memories:
        memories.put(cur, memory)
    for message in side.outbox:
        outbox.put(cur, now, run.tenant, key, message)
    if side.migrated is not None:
        _migrate(cur, key, side.migrated)
    if side.status in ENDED:
        cur.execute(_END, (side.status, side.error, now, key))
    elif side.status is not None or side.error is not None:
        cur.execute(_CHANGE_STATUS, (side.status, side.error, key))


def _migrate(cur: Cursor, key: int, to: VersionChange) -> None:
    cur.execute(_MIGRATE, (to.version, to.code, to.seq, key))
    for hold, scope, node in to.holds:
        cur.execute(_MOVE_HOLD, (scope, node, hold, key))
        cur.execute(_COUNT_MOVE, (hold,))


def refer(cur: Cursor, key: int, side: Side) -> None:
    for digest in side.blobs:
        cur.execute(_REFER, (key, digest))


def close_all(cur: Cursor, now: int, run: SqliteRunRef, reason: str) -> None:
    """A run ends from outside: its open holds and timers end with it (CA-3)."""
    run_holds.close_all(cur, now, run, reason)
    cur.execute(_CLOSE_ALL_TIMERS, (run.key,))


def _is_waiting(cur: Cursor, key: int, number: int) -> bool:
    return (
        row(cur, "SELECT 1 FROM inbox WHERE id = ? AND run_key = ? AND done = 0", (number, key)) is not None
    )


def _apply_timers(cur: Cursor, key: int, side: Side) -> None:
    if side.close_all_timers:
        cur.execute(_CLOSE_ALL_TIMERS, (key,))
    for token in side.close_timers:
        cur.execute(_CLOSE_TIMER, (key, token))
    for timer in side.timers:
        cur.execute(_OPEN_TIMER, (key, timer.token, timer.fire_at))
