"""How much there is to do. Every count is of what is open, by a partial index of it: what has ended, however
much it is, is not looked at."""

from __future__ import annotations

from holdfast.store.backlog import MAX_QUEUES, LaneBacklog, LimitBacklog, lane_figures
from holdfast.store.sql import due_holds
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.concurrency_limits import root_of
from holdfast.types.fleet import FleetFigures, LaneFigures

_LANES = """
SELECT lane, sum(free)::bigint, min(since), sum(lined)::bigint, sum(running)::bigint FROM (
    SELECT lane, count(*) FILTER (WHERE gate = '') AS free, min(ready_at) FILTER (WHERE gate = '') AS since,
           count(*) FILTER (WHERE gate <> '') AS lined, 0 AS running FROM @runs[runs_ready]
    WHERE worker IS NULL AND ready_at IS NOT NULL AND ready_at <= ?::bigint GROUP BY lane
    UNION ALL
    SELECT lane, 0, NULL, 0, count(*) FROM @runs[runs_leased] WHERE worker IS NOT NULL GROUP BY lane
) AS found GROUP BY lane ORDER BY lane"""
_LINED = """
SELECT lane, gate, status = 'pending' AS starts, count(*), min(ready_at) FROM @runs[runs_ready]
WHERE worker IS NULL AND ready_at IS NOT NULL AND ready_at <= ?::bigint AND gate <> ''
GROUP BY lane, gate, starts ORDER BY count(*) DESC LIMIT ?"""
_STATUSES = """
SELECT status, count(*) FROM @runs[runs_by_status]
WHERE status IN ('pending', 'running', 'waiting', 'pending_input', 'resumable') AND NOT read_only
GROUP BY status"""
# Tenant by tenant in the index; how old each is stands there too.
_HOLDS = """
SELECT {age} AS age, count(*), min(created_at) FROM @holds[holds_of_tenant]
WHERE status = 'pending' AND NOT read_only GROUP BY age"""
_REST = """
SELECT (SELECT min(fire_at) FROM @timers),
       (SELECT min(next_at) FROM @schedules WHERE next_at IS NOT NULL),
       (SELECT count(*) FROM @runs WHERE dead AND NOT read_only),
       (SELECT count(*) FROM @outbox WHERE state = 'waiting'),
       (SELECT count(*) FROM @outbox WHERE state = 'dead')"""


async def figures(conn: Conn, now: int | None, ages: tuple[int, ...]) -> FleetFigures:
    at: int = ((await conn.row("SELECT @now(?::bigint)", now)) or (0,))[0]
    holds = await _holds(conn, at, ages)
    timer, schedule, dead, waiting, unsent = (await conn.row(_REST)) or (None, None, 0, 0, 0)
    return FleetFigures(
        at=at,
        lanes=await _lanes(conn, now, at),
        statuses=dict(await conn.rows(_STATUSES)),
        dead=dead,
        holds=_by_age(holds, ages),
        oldest_hold=_since(min((since for _, _, since in holds), default=None), at),
        timer_lag=_since(timer, at),
        hold_lag=_since(await due_holds.next_due(conn), at),
        schedule_lag=_since(schedule, at),
        outbox_waiting=waiting,
        outbox_dead=unsent,
    )


async def _holds(conn: Conn, at: int, ages: tuple[int, ...]) -> list[Row]:
    """(how many of the ages it has reached, how many holds, the oldest)"""
    reached = " + ".join(["0", *("(created_at <= ?::bigint)::int" for _ in ages)])
    return await conn.rows(_HOLDS.format(age=reached), *(at - age for age in ages))


async def _lanes(conn: Conn, now: int | None, at: int) -> list[LaneFigures]:
    lanes = [LaneBacklog(*values) for values in await conn.rows(_LANES, at)]
    if not any(lane.lined for lane in lanes):
        return lane_figures(lanes, [], None, at)
    lined = [LimitBacklog(a, b, bool(c), d, e) for a, b, c, d, e in await conn.rows(_LINED, at, MAX_QUEUES)]
    admission = await conn.load_admission(now, {root_of(line.gate) for line in lined}, lock=False)
    return lane_figures(lanes, lined, admission, at)


def _by_age(holds: list[Row], ages: tuple[int, ...]) -> list[tuple[int, int]]:
    counts = {place: count for place, count, _ in holds}
    return [(age, counts.get(place, 0)) for place, age in enumerate((*ages, 0))]


def _since(instant: int | None, at: int) -> int:
    return 0 if instant is None else max(0, at - instant)
