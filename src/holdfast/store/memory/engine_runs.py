"""Runs that an engine drives: moved there and back, counted against their limit, marked as dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.memory.runs import MemoryRuns
from holdfast.types.status import PARKED, RunStatus

if TYPE_CHECKING:
    from holdfast.store.memory.tables import MemoryRun
    from holdfast.store.rows import RunMove, RunRow
    from holdfast.types.event import EventRow
    from holdfast.types.fleet import Death
    from holdfast.types.ids import RunId
    from holdfast.types.lease import Lease


class MemoryEngineRuns(MemoryRuns):
    async def move_run(self, move: RunMove) -> RunRow | None:
        with self._lock:
            run = self._movable(move)
            if run is None:
                return None
            now = self._now()
            if move.resume is not None:
                self._revive(run, now)
                self._set_status(run, RunStatus.running, now)
            run.term += 1
            self._release(run)
            run.limit, run.suspect, run.updated_at = move.limit, False, now
            run.ready_at = now if move.to is None and run.inbox else None
            if move.to is not None:
                self._take(run, move.to, move.lease_until or 0)
            else:
                self._queue.push(run)
            if move.resume is not None:
                self._add_inbox(run, "resume", move.resume, now)
            run.timers = {timer.token: timer.fire_at for timer in move.timers}
            for message in move.outbox:
                self._put_message(run.tenant, run.id, message, now)
            self._add_event(run, move.event)
            row = run.row()
        self._changes.notify()
        return row

    def _movable(self, move: RunMove) -> MemoryRun | None:
        run = self._ids.get(move.run)
        if run is None or run.read_only or run.superseded_by is not None:
            return None
        if (run.worker, run.term, run.head) != (move.worker, move.term, move.head):
            return None
        if move.resume is None:
            return run if run.status in PARKED else None
        return run if run.status is RunStatus.failed and not self._queue.is_occupied(run) else None

    async def change_limit(self, lease: Lease, limit: str) -> bool:
        with self._lock:
            run = self._owned(lease)
            if run is None:
                return False
            if limit and limit != run.limit and not self._admission().passes(limit, starts=False):
                return False
            run.limit = limit
        self._changes.notify()
        return True

    async def mark_dead(self, run: RunId, *, death: Death, event: EventRow) -> bool:
        with self._lock:
            found = self._ids.get(run)
            if found is None or found.status is not RunStatus.failed or found.dead or found.read_only:
                return False
            if found.term != death.term:
                return False
            found.dead = True
            found.deaths.append(death)
            self._add_event(found, event)
        self._changes.notify()
        return True
