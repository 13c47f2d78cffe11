"""Workers, the deaths of runs, and statistics. A worker's row is what it last reported about itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast.store.backlog import MAX_QUEUES, LaneBacklog, LimitBacklog, lane_figures
from holdfast.store.change_signal import ChangeSignal
from holdfast.store.rows import ClaimRequest, RunRow
from holdfast.store.sql import due_holds, reclaim, time_series, unserved
from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.concurrency_limits import root_of
from holdfast.types.fleet import (
    WORKER_ROW_RETENTION,
    Death,
    EndedRun,
    FleetFigures,
    HoldTimes,
    LaneFigures,
    RecentRows,
    ScheduledFlow,
    VersionBacklog,
    WaitingRuns,
    WorkerRow,
)
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease

# A worker keeps its name until the time it announced; it may always replace its own row.
_RENEW = """
UPDATE @workers SET incarnation = ?, seen_at = @now(?::bigint), until = @now(?::bigint) + ?::bigint, body = ?
WHERE name = ? AND (incarnation = ? OR until <= @now(?::bigint))"""
_PUT = """
INSERT INTO @workers (name, incarnation, seen_at, until, body)
VALUES (?, ?, @now(?::bigint), @now(?::bigint) + ?::bigint, ?) ON CONFLICT DO NOTHING"""
_FORGET = "DELETE FROM @workers WHERE until < @now(?::bigint) - ?::bigint AND name <> ?"
_COLUMNS = "body, seen_at, until"
_HOLDER = f"SELECT {_COLUMNS} FROM @workers WHERE name = ?"
_ALL = f"SELECT {_COLUMNS} FROM @workers WHERE until >= @now(?::bigint) - ?::bigint ORDER BY name"
_DROP = "DELETE FROM @workers WHERE name = ? AND incarnation = ?"


async def put(conn: Conn, now: int | None, worker: WorkerRow, ttl: int) -> WorkerRow | None:
    body = msgspec.msgpack.encode(worker)
    own = (worker.name, worker.incarnation)
    while (
        await conn.run(_RENEW, worker.incarnation, now, now, ttl, body, *own, now) == 0
        and await conn.run(_PUT, *own, now, now, ttl, body) == 0
    ):
        holder = await conn.row(_HOLDER, worker.name)
        if holder is not None:  # otherwise the worker deregistered between the two statements
            return _row(holder)
    await conn.run(_FORGET, now, WORKER_ROW_RETENTION, worker.name)
    return None


async def workers(conn: Conn, now: int | None) -> list[WorkerRow]:
    return [_row(values) for values in await conn.rows(_ALL, now, WORKER_ROW_RETENTION)]


async def drop(conn: Conn, _now: int, name: str, incarnation: str) -> None:
    await conn.run(_DROP, name, incarnation)


def _row(values: Row) -> WorkerRow:
    body, seen_at, until = values
    worker = msgspec.msgpack.decode(body, type=WorkerRow)
    return msgspec.structs.replace(worker, seen_at=seen_at, until=until)


# Every count is of what is open, by a partial index of it: what has ended is not looked at.
_LANES = """
SELECT lane, sum(free)::bigint, min(since), sum(lined)::bigint, sum(running)::bigint FROM (
    SELECT lane, count(CASE WHEN gate = '' THEN 1 END) AS free,
           min(CASE WHEN gate = '' THEN ready_at END) AS since,
           count(CASE WHEN gate <> '' THEN 1 END) AS lined, 0 AS running FROM @runs[runs_ready]
    WHERE worker IS NULL AND ready_at IS NOT NULL AND ready_at <= ?::bigint GROUP BY lane
    UNION ALL
    SELECT lane, 0, NULL, 0, count(*) FROM @runs[runs_leased]
    WHERE worker IS NOT NULL AND (lease_until IS NULL OR lease_until > ?::bigint)
    AND status NOT IN ('waiting', 'pending_input') GROUP BY lane
) AS found GROUP BY lane ORDER BY lane"""
_LINED = """
SELECT lane, gate, status = 'pending' AS starts, count(*), min(ready_at) FROM @runs[runs_ready]
WHERE worker IS NULL AND ready_at IS NOT NULL AND ready_at <= ?::bigint AND gate <> ''
GROUP BY lane, gate, starts ORDER BY count(*) DESC LIMIT ?"""
# As every other view shows them: a run whose lease has expired is interrupted.
_STATUSES = """
SELECT CASE WHEN status = 'running' AND lease_until <= ?::bigint THEN 'resumable' ELSE status END AS shown,
       count(*) FROM @runs[runs_by_status]
WHERE status IN ('pending', 'running', 'waiting', 'pending_input', 'resumable') AND NOT read_only
GROUP BY shown"""
# The index has them in order of tenant and contains their age.
_HOLDS = """
SELECT {age} AS age, count(*), min(created_at) FROM @holds[holds_of_tenant]
WHERE status = 'pending' AND NOT read_only GROUP BY age"""
_VERSIONS = """
SELECT lane, flow, version, count(*), min(ready_at) FROM @runs[runs_ready]
WHERE worker IS NULL AND ready_at IS NOT NULL AND ready_at <= ?::bigint
AND status NOT IN ('completed', 'failed', 'cancelled')
GROUP BY lane, flow, version ORDER BY count(*) DESC, lane, flow, version LIMIT ?"""
_SCHEDULED = """
SELECT flow, count(*), min(next_at) FROM @schedules WHERE next_at IS NOT NULL GROUP BY flow ORDER BY flow"""
# `next_at` 0: a run that was asked for by hand, since an unknown time.
_REST = """
SELECT (SELECT min(fire_at) FROM @timers),
       (SELECT count(*) FROM @timers),
       (SELECT count(*) FROM @runs WHERE suspect AND NOT read_only
        AND status NOT IN ('completed', 'failed', 'cancelled')),
       (SELECT min(next_at) FROM @schedules WHERE next_at > 0),
       (SELECT count(*) FROM @runs WHERE dead AND NOT read_only),
       (SELECT count(*) FROM @outbox WHERE state = 'waiting'),
       (SELECT count(*) FROM @outbox WHERE state = 'dead')"""


async def figures(conn: Conn, now: int | None, ages: tuple[int, ...]) -> FleetFigures:
    at: int = ((await conn.row("SELECT @now(?::bigint)", now)) or (0,))[0]
    holds = await _holds(conn, at, ages)
    found = (await conn.row(_REST)) or (None, 0, 0, None, 0, 0, 0)
    timer, timers, suspects, schedule, dead, waiting, unsent = found
    versions = await conn.rows(_VERSIONS, at, MAX_QUEUES)
    return FleetFigures(
        at=at,
        lanes=await _lanes(conn, now, at),
        statuses=dict(await conn.rows(_STATUSES, at)),
        dead=dead,
        holds=_by_age(holds, ages),
        oldest_hold=_since(min((since for _, _, since in holds), default=None), at),
        timer_lag=_since(timer, at),
        hold_lag=_since(await due_holds.next_due(conn), at),
        schedule_lag=_since(schedule, at),
        outbox_waiting=waiting,
        outbox_dead=unsent,
        versions=[
            VersionBacklog(lane=lane, flow=flow, version=version, ready=ready, oldest=at - since)
            for lane, flow, version, ready, since in versions
        ],
        scheduled=[
            ScheduledFlow(flow=flow, schedules=count, next_at=next_at)
            for flow, count, next_at in await conn.rows(_SCHEDULED)
        ],
        timers=timers,
        next_timer=None if timer is None else max(0, timer - at),
        suspects=suspects,
    )


async def _holds(conn: Conn, at: int, ages: tuple[int, ...]) -> list[Row]:
    """(how many of the ages it has reached, number of holds, the oldest)"""
    reached = " + ".join(["0", *("(created_at <= ?::bigint)::int" for _ in ages)])
    return await conn.rows(_HOLDS.format(age=reached), *(at - age for age in ages))


async def _lanes(conn: Conn, now: int | None, at: int) -> list[LaneFigures]:
    lanes = [LaneBacklog(*values) for values in await conn.rows(_LANES, at, at)]
    if not any(lane.lined for lane in lanes):
        return lane_figures(lanes, [], None, at)
    lined = [LimitBacklog(a, b, bool(c), d, e) for a, b, c, d, e in await conn.rows(_LINED, at, MAX_QUEUES)]
    admission = await conn.load_admission(now, {root_of(line.limit) for line in lined}, lock=False)
    return lane_figures(lanes, lined, admission, at)


def _by_age(holds: list[Row], ages: tuple[int, ...]) -> list[tuple[int, int]]:
    counts = {place: count for place, count, _ in holds}
    return [(age, counts.get(place, 0)) for place, age in enumerate((*ages, 0))]


def _since(instant: int | None, at: int) -> int:
    return 0 if instant is None else max(0, at - instant)


class SqlFleet(SqlAccess):
    _queue_changes: ChangeSignal

    async def put_worker(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        # The row only concerns live processes, and a power cut leaves none: it need not be flushed to disk.
        work = partial(put, worker=worker, ttl=ttl)
        return await self._write(work, server_time=True, flushed=False)

    async def workers(self) -> list[WorkerRow]:
        return await self._read(partial(workers, now=self._server_time()))

    async def drop_worker(self, name: str, incarnation: str) -> None:
        work = partial(drop, name=name, incarnation=incarnation)
        await self._write(work, single=True, flushed=False)

    async def deaths(self, run: RunId) -> list[Death]:
        return await self._read(partial(reclaim.deaths, run=run))

    async def next_suspect(self, want: ClaimRequest, *, limited: bool = False) -> int | None:
        find = partial(reclaim.next_suspect, now=self._server_time(), want=want, limited=limited)
        return await self._read(find)

    async def end_isolation(self, lease: Lease) -> bool:
        return await self._write(partial(reclaim.end_isolation, lease=lease), single=True, flushed=False)

    async def leases_ahead(self, beyond: int, *, limit: int) -> list[RunRow]:
        query = partial(reclaim.leases_ahead, now=self._server_time(), beyond=beyond, limit=limit)
        return await self._read(query)

    async def expire_leases(self, rows: Sequence[RunRow]) -> int:
        return await self._write(partial(reclaim.expire_leases, rows=rows), server_time=True)

    async def correct_ready_times(self) -> int:
        corrected = await self._write(reclaim.correct_ready_times, wakes=True, server_time=True)
        self._queue_changes.notify()
        return corrected

    async def waiting_runs(self, versions: Sequence[str]) -> list[WaitingRuns]:
        return await self._read(partial(unserved.waiting_runs, versions=versions), slow=True)

    async def tell_missing(
        self, of: WaitingRuns, missing: Sequence[str], *, limit: int, but: Sequence[RunId] = ()
    ) -> int:
        given = {"of": of, "missing": missing, "but": but, "limit": limit}
        return await self._write(partial(unserved.tell_missing, **given))

    async def tell_run(self, run: RunId, missing: Sequence[str]) -> int:
        return await self._write(partial(unserved.tell_run, run=run, missing=missing))

    async def tell_taken(self, *, limit: int) -> int:
        return await self._write(partial(unserved.tell_taken, limit=limit))

    async def fleet_figures(self, *, ages: tuple[int, ...]) -> FleetFigures:
        return await self._read(partial(figures, now=self._server_time(), ages=ages), slow=True)

    async def ended_runs(self, tenant: str, *, since: int, limit: int) -> RecentRows[EndedRun]:
        given = {"tenant": tenant, "since": since, "limit": limit}
        return await self._read(partial(time_series.ended_runs, **given), slow=True)

    async def hold_times(self, tenant: str, *, since: int, limit: int) -> RecentRows[HoldTimes]:
        given = {"tenant": tenant, "since": since, "limit": limit}
        return await self._read(partial(time_series.hold_times, **given), slow=True)
