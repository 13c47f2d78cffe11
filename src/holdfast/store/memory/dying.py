"""Leases that lapsed are taken away from workers that fell silent; each such death is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.memory.runs import MemoryRuns
from holdfast.store.recovery import PROGRESS, death_event, death_summary, recovery_delay
from holdfast.types.fleet import Death
from holdfast.types.status import PARKED, RunStatus

if TYPE_CHECKING:
    from holdfast.store.memory.rows import MemoryRun
    from holdfast.store.protocols import Claim, ClaimRequest, RunRow
    from holdfast.types.event import EventRow


class MemoryRecovery(MemoryRuns):
    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        with self._lock:
            now = self._now()
            lapsed = [run for run in self._leased.values() if not self._is_held(run, now)]
            lapsed.sort(key=_lapsed_at)
            for run in lapsed[:limit]:
                self._recover(run, now, max_recoveries, backoff)
            rows = [run.row() for run in lapsed[:limit]]
        if rows:
            self._bell.ring()
        return rows

    def _recover(self, run: MemoryRun, now: int, max_recoveries: int, backoff: int) -> None:
        death = Death(
            term=run.term,
            worker=run.worker or "",
            at=now,
            lease_until=run.lease_until or 0,
            head=run.head,
            status=run.status,
        )
        run.term += 1
        self._release(run)
        if run.status in PARKED:
            self._wake(run, now)
            return
        run.recoveries = 1 if _done_since(run) else run.recoveries + 1
        run.deaths.append(death)
        if run.recoveries > max_recoveries:
            run.error = death_summary(run.deaths[-run.recoveries :], max_recoveries)
            run.dead = True
            self._set_status(run, RunStatus.failed, now)
            self._add_event(run, death_event(death, run.recoveries, None))
            return
        if run.status is not RunStatus.pending:
            self._set_status(run, RunStatus.resumable, now)
        run.ready_at = now + recovery_delay(run.recoveries, backoff)
        self._queue.push(run)
        self._add_event(run, death_event(death, run.recoveries, run.ready_at))

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        with self._lock:
            run = None if want.run is None else self._ids.get(want.run)
            if run is None or run.read_only or not run.dead or run.superseded_by is not None:
                return None
            now = self._now()
            self._revive(run, now)
            run.gate = ""
            self._add_event(run, event)
            return self._claim(run, want, now)


def _done_since(run: MemoryRun) -> bool:
    """Whether something got done since the worker before this one died."""
    died = run.deaths[-1].head if run.deaths else None
    return died is not None and any(r.seq > died and r.kind in PROGRESS for r in run.records)


def _lapsed_at(run: MemoryRun) -> int:
    return run.lease_until or 0
