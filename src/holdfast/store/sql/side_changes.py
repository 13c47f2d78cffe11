"""What a record changes outside the journal, in the record's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import StoreError
from holdfast.store.child_runs import cancel_message
from holdfast.store.sql import blobs, memories, outbox, run_inbox
from holdfast.store.sql import hold_rows as holds
from holdfast.store.sql.audit import AuditEntries
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.hold_rows import RunRef
from holdfast.types.ids import RunId
from holdfast.types.record import Refusal, Side, VersionChange
from holdfast.types.status import ENDED, RunStatus, may_follow

_CHILDREN = """
SELECT id FROM @runs WHERE parent_run = ? AND status NOT IN ('completed', 'failed', 'cancelled')
ORDER BY key"""
_OPEN_TIMER = "INSERT INTO @timers (run_key, token, fire_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_CLOSE_TIMERS = "DELETE FROM @timers WHERE run_key = ? AND token = ANY(?::text[])"
_CLOSE_ALL_TIMERS = "DELETE FROM @timers WHERE run_key = ?"
_WAITING = "SELECT count(*) FROM @inbox WHERE id = ANY(?::bigint[]) AND run_key = ? AND NOT done"
# Almost always one: a list as an argument costs as much as the statement itself.
_ONE_WAITING = "SELECT 1 FROM @inbox WHERE id = ? AND run_key = ? AND NOT done"
_TAKE_ONE = "UPDATE @inbox SET done = true WHERE id = ? AND run_key = ?"
_TAKE = "UPDATE @inbox SET done = true WHERE id = ANY(?::bigint[]) AND run_key = ?"
_REFER = """
INSERT INTO @blob_refs (run_key, digest) VALUES (?, ?) ON CONFLICT DO NOTHING"""
_END = """
UPDATE @runs SET status = ?, error = coalesce(?, error), ended_at = ?, worker = NULL, lease_until = NULL,
                 ready_at = NULL
WHERE key = ?"""
_MIGRATE = "UPDATE @runs SET version = ?, code = ?, migrated = ? WHERE key = ?"
_MOVE_HOLD = "UPDATE @holds SET scope = ?, node = ? WHERE id = ? AND run_key = ?"
_COUNT_MOVE = "UPDATE @holds SET version = version + 1 WHERE id = ? AND status = 'pending'"
_CHANGE_STATUS = "UPDATE @runs SET status = coalesce(?, status), error = coalesce(?, error) WHERE key = ?"


async def side_refusal(conn: Conn, key: int, sides: Sequence[Side], status: str) -> Refusal | None:
    """Why the sides cannot be applied; checked before anything of the run is written. Raises StoreError for a
    change of status that no run may make: that is a mistake of the caller.
    """
    wanted = [number for side in sides for number in side.inbox_done]
    # A message has its effect once: if another record consumed one of them, this record must not be written.
    if wanted and not await _are_waiting(conn, key, wanted):
        return Refusal.inbox_taken
    if await missing_blob(conn, sides) is not None:
        return Refusal.put_blobs_again
    check_transitions(status, sides)
    return None


async def _are_waiting(conn: Conn, key: int, numbers: list[int]) -> bool:
    if len(numbers) == 1:
        return await conn.row(_ONE_WAITING, numbers[0], key) is not None
    found = await conn.row(_WAITING, numbers, key)
    return len(set(numbers)) == len(numbers) and found is not None and found[0] == len(numbers)


async def missing_blob(conn: Conn, sides: Sequence[Side]) -> bytes | None:
    """The first blob that is named but missing or condemned (D-37)."""
    return await blobs.missing_blob(conn, [digest for side in sides for digest in side.blobs])


def check_transitions(status: str, sides: Sequence[Side]) -> None:
    for new in [side.status for side in sides if side.status is not None]:
        if not may_follow(RunStatus(status), new):
            raise StoreError(f"a run that is {status} cannot become {new}.")
        status = new


async def apply_side(conn: Conn, now: int, run: RunRef, side: Side, entries: AuditEntries) -> None:
    await apply_rows(conn, now, run, side, entries)
    await apply_status(conn, now, run.key, side)


async def apply_rows(conn: Conn, now: int, run: RunRef, side: Side, entries: AuditEntries) -> None:
    """Everything but the status in the run's own row."""
    key = run.key
    await refer(conn, key, side.blobs)
    await holds.apply(conn, now, run, side, entries)
    await _apply_timers(conn, key, side)
    if side.inbox_done:
        await _take(conn, key, side.inbox_done)
    for memory in side.memories:
        await memories.put(conn, memory)
    for message in side.outbox:
        await outbox.put(conn, now, run.tenant, key, message)
    if side.migrated is not None:
        await _migrate(conn, key, side.migrated)
    if side.status is RunStatus.cancelled:
        await _cancel_children(conn, now, run)


async def _cancel_children(conn: Conn, now: int, run: RunRef) -> None:
    """In the transaction of the parent's end: a crash leaves no child behind that nothing stops."""
    children = await conn.rows(_CHILDREN, run.id)
    for (child,) in children:
        await run_inbox.send(conn, now, RunId(child), "cancel", cancel_message(RunId(run.id)), "cancel", None)
    if children:
        await conn.notify()


async def _take(conn: Conn, key: int, numbers: list[int]) -> None:
    if len(numbers) == 1:
        await conn.run(_TAKE_ONE, numbers[0], key)
    else:
        await conn.run(_TAKE, list(numbers), key)


async def apply_status(conn: Conn, now: int, key: int, side: Side) -> None:
    if side.status in ENDED:
        await conn.run(_END, side.status, side.error, now, key)
    elif side.status is not None or side.error is not None:
        await conn.run(_CHANGE_STATUS, side.status, side.error, key)


async def _migrate(conn: Conn, key: int, to: VersionChange) -> None:
    await conn.run(_MIGRATE, to.version, to.code, to.seq, key)
    for hold, scope, node in to.holds:
        await conn.run(_MOVE_HOLD, scope, node, hold, key)
        await conn.run(_COUNT_MOVE, hold)


async def refer(conn: Conn, key: int, blobs: Sequence[bytes]) -> None:
    if blobs:
        await conn.many(_REFER, [(key, digest) for digest in blobs])


async def close_all(conn: Conn, now: int, run: RunRef, reason: str, entries: AuditEntries) -> None:
    """The run is ended from outside: its open holds and timers end with it (CA-3)."""
    await holds.close_all(conn, now, run, reason, entries)
    await conn.run(_CLOSE_ALL_TIMERS, run.key)


async def _apply_timers(conn: Conn, key: int, side: Side) -> None:
    if side.close_all_timers:
        await conn.run(_CLOSE_ALL_TIMERS, key)
    # Before new ones are set: a record may replace a timer by one of the same name, and an insert keeps the
    # old one.
    if side.close_timers:
        await conn.run(_CLOSE_TIMERS, key, list(side.close_timers))
    if side.timers:
        await conn.many(_OPEN_TIMER, [(key, timer.token, timer.fire_at) for timer in side.timers])
