"""Runs that were taken from workers that died: which are counted, which are suspects, whose times are
corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.memory.runs import MemoryRuns
from holdfast.store.recovery import (
    PROGRESS,
    death_event,
    death_summary,
    recoveries_after,
    recovery_delay,
)
from holdfast.types.clock import MICROS
from holdfast.types.fleet import Death
from holdfast.types.outbox import OutboxState
from holdfast.types.status import ENDED, PARKED, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.memory.tables import MemoryRun
    from holdfast.store.rows import Claim, ClaimRequest, RunRow
    from holdfast.types.event import EventRow
    from holdfast.types.lease import Lease


class MemoryRecovery(MemoryRuns):
    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        with self._lock:
            now = self._now()
            lapsed = [run for run in self._leased.values() if not self._is_held(run, now)]
            lapsed.sort(key=_lapsed_at)
            for run in lapsed[:limit]:
                # A suspect was claimed alone.
                alone = run.suspect or not self._was_beside(run)
                self._recover(run, now, max_recoveries, backoff, alone=alone)
            rows = [run.row() for run in lapsed[:limit]]
        if rows:
            self._changes.notify()
        return rows

    def _was_beside(self, run: MemoryRun) -> bool:
        """Whether other runs are leased by the same worker, or were when it died."""
        return any(
            other is not run
            and (other.worker == run.worker or any(death.worker == run.worker for death in other.deaths))
            for other in self._keys.values()
        )

    def _recover(self, run: MemoryRun, now: int, max_recoveries: int, backoff: int, *, alone: bool) -> None:
        death = Death(
            term=run.term,
            worker=run.worker or "",
            at=now,
            lease_until=run.lease_until or 0,
            head=run.head,
            status=run.status,
            alone=alone,
        )
        run.term += 1
        self._release(run)
        if run.status in PARKED:
            self._wake(run, now)
            return
        progressed = _done_since(run)
        run.recoveries = recoveries_after(run.recoveries, progressed=progressed, alone=alone)
        run.suspect = bool(run.deaths) and not progressed
        run.deaths.append(death)
        if run.recoveries > max_recoveries:
            run.error = death_summary(_alone(run)[-run.recoveries :], max_recoveries)
            run.dead = True
            self._set_status(run, RunStatus.failed, now)
            self._add_event(run, death_event(death, run.recoveries, None))
            return
        if run.status is not RunStatus.pending:
            self._set_status(run, RunStatus.resumable, now)
        run.ready_at = now + recovery_delay(run.recoveries, backoff)
        self._queue.push(run)
        self._add_event(run, death_event(death, run.recoveries, run.ready_at))

    async def next_suspect(self, want: ClaimRequest, *, limited: bool = False) -> int | None:
        with self._lock:
            now = self._now()
            ready = (
                run.ready_at
                for run in self._keys.values()
                if run.suspect
                and run.worker is None
                and (limited or not run.limit)
                and run.ready_at is not None
                and run.ready_at <= now
                and (want.lanes is None or run.new.lane in want.lanes)
                and want.serves(run.new.version)
            )
            return min(ready, default=None)

    async def end_isolation(self, lease: Lease) -> bool:
        with self._lock:
            run = self._owned(lease)
            if run is not None:
                run.suspect = False
            return run is not None

    async def leases_ahead(self, beyond: int, *, limit: int) -> list[RunRow]:
        with self._lock:
            latest = self._now() + beyond
            found = [run for run in self._leased.values() if (run.lease_until or 0) > latest]
            found.sort(key=_lapsed_at, reverse=True)
            return [run.row() for run in found[:limit]]

    async def expire_leases(self, rows: Sequence[RunRow]) -> int:
        with self._lock:
            found = [(self._keys.get(row.key), row) for row in rows]
            now, count = self._now(), 0
            for run, row in found:
                if run is not None and (run.id, run.term, run.worker, run.lease_until) == (
                    row.id,
                    row.term,
                    row.worker,
                    row.lease_until,
                ):
                    run.lease_until = now
                    count += 1
            return count

    async def correct_ready_times(self) -> int:
        with self._lock:
            now, count = self._now(), 0
            for run in self._keys.values():
                ahead = run.updated_at - now
                if run.worker is not None or run.ready_at is None or run.status in ENDED or run.read_only:
                    continue
                if run.ready_at > now and ahead > MICROS:
                    run.ready_at, run.updated_at = max(now, run.ready_at - ahead), now
                    self._queue.push(run)
                    count += 1
            count += self._correct_messages(now)
            for limit, starts in self._limit_starts.items():
                self._limit_starts[limit] = [start for start in starts if start.at <= now + MICROS]
        self._changes.notify()
        self._queue_changes.notify()
        return count

    def _correct_messages(self, now: int) -> int:
        messages = [row for row in self._messages.values() if row.is_open and row.updated_at > now + MICROS]
        for row in messages:
            ahead = row.updated_at - now
            self._messages[row.tenant, row.id] = replace(
                row,
                visible_at=_earlier(row.visible_at, ahead, now),
                claim_until=None if row.claim_until is None else _earlier(row.claim_until, ahead, now),
                updated_at=now,
            )
        waiting = [row for row in self._outbox.values() if row.state is OutboxState.waiting]
        notes = [row for row in waiting if row.at > now + MICROS]
        for row in notes:
            ahead = row.at - now
            self._outbox[row.id] = replace(
                row,
                due_at=_earlier(row.due_at, ahead, now),
                claimed_until=None if row.claimed_until is None else _earlier(row.claimed_until, ahead, now),
                at=now,
            )
        return len(messages) + len(notes)

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        with self._lock:
            run = None if want.run is None else self._ids.get(want.run)
            if run is None or run.read_only or not run.dead or run.superseded_by is not None:
                return None
            now = self._now()
            self._revive(run, now)
            run.limit = ""
            self._add_event(run, event)
            return self._claim(run, want, now)


def _earlier(at: int, ahead: int, now: int) -> int:
    return at if at <= now else max(now, at - ahead)


def _alone(run: MemoryRun) -> list[Death]:
    return [death for death in run.deaths if death.alone]


def _done_since(run: MemoryRun) -> bool:
    """Whether the run made progress since the previous worker died."""
    died = run.deaths[-1].head if run.deaths else None
    return died is not None and any(r.seq > died and r.kind in PROGRESS for r in run.records)


def _lapsed_at(run: MemoryRun) -> int:
    return run.lease_until or 0
