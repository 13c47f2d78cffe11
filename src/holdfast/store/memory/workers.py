"""Workers, schedules, and statistics of the work that is open."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.backlog import LaneBacklog, LimitBacklog, lane_figures
from holdfast.store.memory.concurrency_limits import MemoryLimits
from holdfast.store.memory.holds import MemoryHolds
from holdfast.store.memory.tables import MemoryTables
from holdfast.store.unserved import missing_event, missing_mark
from holdfast.types.fleet import (
    WORKER_ROW_RETENTION,
    EndedRun,
    FleetFigures,
    HoldTimes,
    LaneFigures,
    RecentRows,
    ScheduledFlow,
    VersionBacklog,
    WaitingRuns,
)
from holdfast.types.hold import UNASKED, HoldRow
from holdfast.types.outbox import OutboxState
from holdfast.types.schedule import ScheduleRow
from holdfast.types.status import CLAIMABLE, ENDED, PARKED, HoldStatus, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.store.memory.tables import MemoryRun
    from holdfast.types.fleet import Death, WorkerRow
    from holdfast.types.ids import RunId


class MemoryFleet(MemoryHolds, MemoryLimits):
    async def put_worker(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        with self._lock:
            now = self._now()
            holder = self._workers.get(worker.name)
            if holder is not None and holder.incarnation != worker.incarnation and holder.until > now:
                return holder
            self._workers[worker.name] = replace(worker, seen_at=now, until=now + ttl)
            return None

    async def workers(self) -> list[WorkerRow]:
        with self._lock:
            since = self._now() - WORKER_ROW_RETENTION
            self._workers = {name: row for name, row in self._workers.items() if row.until >= since}
            return [row for _, row in sorted(self._workers.items())]

    async def drop_worker(self, name: str, incarnation: str) -> None:
        with self._lock:
            row = self._workers.get(name)
            if row is not None and row.incarnation == incarnation:
                del self._workers[name]

    async def deaths(self, run: RunId) -> list[Death]:
        with self._lock:
            found = self._ids.get(run)
            return [] if found is None else list(found.deaths)

    async def fleet_figures(self, *, ages: tuple[int, ...]) -> FleetFigures:
        due = await self.next_due_hold()
        with self._lock:
            now = self._now()
            asked = [
                row.created_at
                for row in self._holds.values()
                if row.status is HoldStatus.pending and not row.read_only
            ]
            buckets = Counter(bisect_right(ages, now - at) for at in asked)
            runs = [run for run in self._keys.values() if not run.read_only]
            states = Counter(message.state for message in self._outbox.values())
            return FleetFigures(
                at=now,
                lanes=self._lanes(now),
                statuses=dict(Counter(str(run.shown_status(now)) for run in runs if run.status not in ENDED)),
                dead=sum(run.dead for run in runs),
                holds=[(age, buckets[place]) for place, age in enumerate((*ages, 0))],
                oldest_hold=_since(asked, now),
                timer_lag=_since((at for run in runs for at in run.timers.values()), now),
                hold_lag=_since([] if due is None else [due], now),
                # 0: a run that was asked for by hand, since an unknown time.
                schedule_lag=_since((row.next_at for row in self._schedules.values() if row.next_at), now),
                outbox_waiting=states[OutboxState.waiting],
                outbox_dead=states[OutboxState.dead],
                versions=self._versions(now),
                scheduled=self._scheduled(),
                timers=sum(len(run.timers) for run in runs),
                next_timer=min(
                    (max(0, at - now) for run in runs for at in run.timers.values()), default=None
                ),
                suspects=sum(run.suspect for run in runs if run.status not in ENDED),
            )

    async def waiting_runs(self, versions: Sequence[str]) -> list[WaitingRuns]:
        with self._lock:
            found = Counter(
                (run.new.lane, run.new.flow, run.new.version, run.missing_mark)
                for run in self._keys.values()
                if _is_claimable(run) and run.new.version in versions
            )
            return [WaitingRuns(*place, count) for place, count in sorted(found.items())]

    async def tell_missing(
        self, of: WaitingRuns, missing: Sequence[str], *, limit: int, but: Sequence[RunId] = ()
    ) -> int:
        place, mark = (of.lane, of.flow, of.version), missing_mark(missing)
        with self._lock:
            found = [
                run
                for run in self._keys.values()
                if _is_claimable(run)
                and (run.new.lane, run.new.flow, run.new.version) == place
                and run.missing_mark != mark
                and run.new.id not in but
            ]
            return self._tell(found[:limit], missing)

    async def tell_run(self, run: RunId, missing: Sequence[str]) -> int:
        with self._lock:
            found = [
                each
                for each in self._keys.values()
                if each.new.id == run and _is_claimable(each) and each.missing_mark != missing_mark(missing)
            ]
            return self._tell(found, missing)

    async def tell_taken(self, *, limit: int) -> int:
        with self._lock:
            found = [
                run
                for run in self._keys.values()
                if run.missing_mark
                and run.status not in ENDED
                and not _is_claimable(run)
                and not run.read_only
            ]
            return self._tell(found[:limit], ())

    def _tell(self, runs: Sequence[MemoryRun], missing: Sequence[str]) -> int:
        for run in runs:
            run.missing_mark = missing_mark(missing)
            self._add_event(run, missing_event(missing, self._now()))
        return len(runs)

    async def ended_runs(self, tenant: str, *, since: int, limit: int) -> RecentRows[EndedRun]:
        with self._lock:
            runs = [
                (run.ended_at, run)
                for run in self._keys.values()
                if run.tenant == tenant and run.ended_at is not None and run.ended_at >= since
            ]
        newest = sorted(runs, key=lambda each: each[0])[-limit:]
        rows = [
            EndedRun(at, str(run.status)) for at, run in newest if run.status in ENDED and not run.read_only
        ]
        return RecentRows(rows, newest[0][0] if len(newest) == limit else None)

    async def hold_times(self, tenant: str, *, since: int, limit: int) -> RecentRows[HoldTimes]:
        with self._lock:
            holds = [row for row in self._holds.values() if row.tenant == tenant]
        rows: list[HoldTimes] = []
        reach: list[int] = []
        for status in HoldStatus:
            newest = sorted((row for row in holds if row.status is status), key=lambda row: row.created_at)
            newest = newest[-limit:]
            reach += [newest[0].created_at] if len(newest) == limit else []
            rows += [_hold_times(row) for row in newest if row.type not in UNASKED and not row.read_only]
        shown = [each for each in rows if each.ended_at is None or each.ended_at >= since]
        return RecentRows(shown, max(reach, default=None))

    def _versions(self, now: int) -> list[VersionBacklog]:
        ready: dict[tuple[str, str, str], list[int]] = {}
        for run in self._keys.values():
            if run.worker is None and run.ready_at is not None and run.ready_at <= now:
                place = (run.new.lane, run.new.flow, run.new.version)
                ready.setdefault(place, []).append(run.ready_at)
        found = [
            VersionBacklog(lane=lane, flow=flow, version=version, ready=len(since), oldest=now - min(since))
            for (lane, flow, version), since in sorted(ready.items())
        ]
        return sorted(found, key=lambda each: -each.ready)

    def _scheduled(self) -> list[ScheduledFlow]:
        flows: dict[str, list[int]] = {}
        for row in self._schedules.values():
            if row.next_at is not None:
                flows.setdefault(row.flow, []).append(row.next_at)
        return [
            ScheduledFlow(flow=flow, schedules=len(times), next_at=min(times))
            for flow, times in sorted(flows.items())
        ]

    def _lanes(self, now: int) -> list[LaneFigures]:
        running = Counter(
            run.new.lane
            for run in self._leased.values()
            if (run.lease_until is None or run.lease_until > now) and run.status not in PARKED
        )
        ready: dict[tuple[str, str, bool], list[int]] = {}
        for run in self._keys.values():
            if run.worker is None and run.ready_at is not None and run.ready_at <= now:
                starts = bool(run.limit) and run.status is RunStatus.pending
                ready.setdefault((run.new.lane, run.limit, starts), []).append(run.ready_at)
        lined = [
            LimitBacklog(lane, limit, starts, len(since), min(since))
            for (lane, limit, starts), since in ready.items()
            if limit
        ]
        lanes: list[LaneBacklog] = []
        for name in sorted({*running, *(lane for lane, _, _ in ready)}):
            free = ready.get((name, "", False), [])
            waiting = sum(line.count for line in lined if line.lane == name)
            lanes.append(LaneBacklog(name, len(free), min(free, default=None), waiting, running[name]))
        return lane_figures(lanes, lined, self._admission(), now)


def _is_claimable(run: MemoryRun) -> bool:
    return run.worker is None and run.status in CLAIMABLE and not run.read_only


def _since(instants: Iterable[int], now: int) -> int:
    return max(0, now - min(instants, default=now))


class MemorySchedules(MemoryTables):
    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        place = (row.tenant, row.name)
        with self._lock:
            known = self._schedules.get(place)
            revision = 0 if known is None else known.revision
            if expect is not None and expect != revision:
                return None
            kept = replace(row, body=bytes(row.body), revision=revision + 1, updated_at=self._now())
            self._schedules[place] = kept
            return kept

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None:
        with self._lock:
            return self._schedules.get((tenant, name))

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        with self._lock:
            found = sorted(place for place in self._schedules if place > after)
            wanted = [place for place in found if tenant is None or place[0] == tenant]
            return [self._schedules[place] for place in wanted[:limit]]

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        with self._lock:
            now = self._now()
            due = [
                (row.next_at, place)
                for place, row in self._schedules.items()
                if row.flow in flows and row.next_at is not None and row.next_at <= now
            ]
            return [self._schedules[place] for _, place in sorted(due)[:limit]]

    async def next_schedule(self, flows: tuple[str, ...]) -> int | None:
        with self._lock:
            found = (row.next_at for row in self._schedules.values() if row.flow in flows)
            return min((at for at in found if at is not None), default=None)

    async def drop_schedule(self, tenant: str, name: str) -> bool:
        with self._lock:
            return self._schedules.pop((tenant, name), None) is not None


def _hold_times(row: HoldRow) -> HoldTimes:
    return HoldTimes(
        status=str(row.status),
        created_at=row.created_at,
        ended_at=row.closed_at if row.resolved_at is None else row.resolved_at,
        ended_by=row.resolved_by or row.closed_by,
        expires_at=row.expires_at,
        original_timeout=row.original_timeout,
        escalations=row.escalation_count,
    )
