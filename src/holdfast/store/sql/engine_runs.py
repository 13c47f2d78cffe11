"""Runs that an engine drives: moved there and back, counted against their limit, marked as dead letters."""

from __future__ import annotations

from functools import partial

from holdfast.store.fence import OWNED, lease_values
from holdfast.store.rows import RunMove, RunRow
from holdfast.store.sql import outbox, reclaim, run_inbox
from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.runs import COLUMNS, run_row
from holdfast.telemetry import crashpoint
from holdfast.types.concurrency_limits import root_of
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.status import PARKED, RunStatus

_STANDING = """
SELECT key, tenant, status, worker, term, head FROM @runs
WHERE id = ? AND NOT read_only AND superseded_by IS NULL FOR UPDATE"""
_MOVE = """
UPDATE @runs SET term = term + 1, worker = ?, lease_until = ?::bigint, gate = ?, updated_at = ?::bigint,
    suspect = false, status = CASE WHEN status = 'resumable' THEN 'running' ELSE status END, ready_at = NULL
WHERE key = ?"""
# What a message does to a run without a worker: one may have arrived while the engine had it.
_WAKE_FOR_MAIL = """
UPDATE @runs SET ready_at = ?::bigint WHERE key = ? AND worker IS NULL
AND EXISTS (SELECT 1 FROM @inbox AS inbox WHERE inbox.run_key = ? AND NOT inbox.done)"""
_CLOSE_TIMERS = "DELETE FROM @timers WHERE run_key = ?"
_OPEN_TIMER = "INSERT INTO @timers (run_key, token, fire_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_MOVED = f"SELECT {COLUMNS} FROM @runs WHERE key = ?"
_LIMIT = f"SELECT gate FROM @runs WHERE {OWNED} FOR UPDATE"
_SET_LIMIT = "UPDATE @runs SET gate = ? WHERE key = ?"
_FAILED = """
SELECT key FROM @runs WHERE id = ? AND term = ? AND status = 'failed' AND NOT dead AND NOT read_only
FOR UPDATE"""
_MARK_DEAD = "UPDATE @runs SET dead = true WHERE key = ?"


async def move_run(conn: Conn, now: int, move: RunMove) -> RunRow | None:
    if move.resume is not None and not await run_inbox.lets_resume(conn, now, move.run):
        return None
    found = await conn.row(_STANDING, move.run)
    if found is None:
        return None
    key, tenant, status, *standing = found
    movable = status == RunStatus.failed if move.resume is not None else status in PARKED
    if not movable or standing != [move.worker, move.term, move.head]:
        return None
    if move.resume is not None:
        await conn.run(run_inbox.REVIVE, key)
    await conn.run(_MOVE, move.to, move.lease_until, move.limit, now, key)
    if move.resume is not None:
        await run_inbox.put(conn, now, key, "resume", move.resume)
    await conn.run(_CLOSE_TIMERS, key)
    await conn.many(_OPEN_TIMER, [(key, timer.token, timer.fire_at) for timer in move.timers])
    for message in move.outbox:
        await outbox.put(conn, now, tenant, key, message)
    await run_inbox.add_events(conn, key, [move.event])
    await conn.run(_WAKE_FOR_MAIL, now, key, key)
    crashpoint("inside_move")
    moved = await conn.row(_MOVED, key)
    assert moved is not None
    return run_row(moved)


async def change_limit(conn: Conn, now: int | None, lease: Lease, limit: str) -> bool:
    # The limit before the run, as a claim locks them.
    admission = await conn.load_admission(now, [root_of(limit)], lock=True) if limit else None
    found = await conn.row(_LIMIT, *lease_values(lease))
    if found is None:
        return False
    if found[0] != limit:
        if admission is not None and not admission.passes(limit, starts=False):
            return False
        await conn.run(_SET_LIMIT, limit, lease.key)
    return True


async def mark_dead(conn: Conn, _now: int, run: RunId, death: Death, event: EventRow) -> bool:
    found = await conn.row(_FAILED, run, death.term)
    if found is None:
        return False
    await conn.run(_MARK_DEAD, found[0])
    await conn.run(reclaim.INSERT_DEATH, *reclaim.values(found[0], death))
    await run_inbox.add_events(conn, found[0], [event])
    return True


class SqlEngineRuns(SqlAccess):
    """The part of the store that an engine uses."""

    async def move_run(self, move: RunMove) -> RunRow | None:
        return await self._write(partial(move_run, move=move), wakes=True)

    async def change_limit(self, lease: Lease, limit: str) -> bool:
        work = partial(change_limit, lease=lease, limit=limit)
        return await self._write(work, wakes=not limit, server_time=True)

    async def mark_dead(self, run: RunId, *, death: Death, event: EventRow) -> bool:
        return await self._write(partial(mark_dead, run=run, death=death, event=event))
