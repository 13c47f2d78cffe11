"""How much there is to do. Every count is of what is open, by a partial index of it: what has ended, however
much it is, is not looked at."""

from __future__ import annotations

from holdfast.store.backlog import MAX_QUEUES, LaneBacklog, LimitBacklog, lane_figures
from holdfast.store.sql.sqlite import gates, hold_dues
from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.types.fleet import FleetFigures, LaneFigures

_LANES = """
SELECT lane, sum(free), min(since), sum(lined), sum(running) FROM (
    SELECT lane, count(*) FILTER (WHERE gate = '') AS free, min(ready_at) FILTER (WHERE gate = '') AS since,
           count(*) FILTER (WHERE gate <> '') AS lined, 0 AS running FROM runs INDEXED BY runs_ready
    WHERE worker IS NULL AND ready_at IS NOT NULL AND ready_at <= ? GROUP BY lane
    UNION ALL
    SELECT lane, 0, NULL, 0, count(*) FROM runs INDEXED BY runs_leased WHERE worker IS NOT NULL GROUP BY lane
) GROUP BY lane ORDER BY lane"""
_LINED = """
SELECT lane, gate, status = 'pending' AS starts, count(*), min(ready_at) FROM runs INDEXED BY runs_ready
WHERE worker IS NULL AND ready_at IS NOT NULL AND ready_at <= ? AND gate <> ''
GROUP BY lane, gate, starts ORDER BY count(*) DESC LIMIT ?"""
_STATUSES = """
SELECT status, count(*) FROM runs INDEXED BY runs_by_status
WHERE status IN ('pending', 'running', 'waiting', 'pending_input', 'resumable') AND NOT read_only
GROUP BY status"""
_HOLDS = """
SELECT {age} AS age, count(*), min(created_at) FROM holds INDEXED BY holds_of_tenant
WHERE status = 'pending' AND NOT read_only GROUP BY age"""
_REST = """
SELECT (SELECT min(fire_at) FROM timers),
       (SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL),
       (SELECT count(*) FROM runs WHERE dead AND NOT read_only),
       (SELECT count(*) FROM outbox WHERE state = 'waiting'),
       (SELECT count(*) FROM outbox WHERE state = 'dead')"""


def figures(cur: Cursor, now: int, ages: tuple[int, ...]) -> FleetFigures:
    holds = _holds(cur, now, ages)
    timer, schedule, dead, waiting, unsent = row(cur, _REST) or (None, None, 0, 0, 0)
    return FleetFigures(
        at=now,
        lanes=_lanes(cur, now),
        statuses=dict(rows(cur, _STATUSES)),
        dead=dead,
        holds=_by_age(holds, ages),
        oldest_hold=_since(min((since for _, _, since in holds), default=None), now),
        timer_lag=_since(timer, now),
        hold_lag=_since(hold_dues.next_due(cur), now),
        schedule_lag=_since(schedule, now),
        outbox_waiting=waiting,
        outbox_dead=unsent,
    )


def _holds(cur: Cursor, now: int, ages: tuple[int, ...]) -> list[Row]:
    """(how many of the ages it has reached, how many holds, the oldest)"""
    reached = " + ".join(["0", *("(created_at <= ?)" for _ in ages)])
    return rows(cur, _HOLDS.format(age=reached), tuple(now - age for age in ages))


def _lanes(cur: Cursor, now: int) -> list[LaneFigures]:
    lanes = [LaneBacklog(*values) for values in rows(cur, _LANES, (now,))]
    if not any(lane.lined for lane in lanes):
        return lane_figures(lanes, [], None, now)
    lined = [LimitBacklog(a, b, bool(c), d, e) for a, b, c, d, e in rows(cur, _LINED, (now, MAX_QUEUES))]
    return lane_figures(lanes, lined, gates.load_admission(cur, now), now)


def _by_age(holds: list[Row], ages: tuple[int, ...]) -> list[tuple[int, int]]:
    counts = {place: count for place, count, _ in holds}
    return [(age, counts.get(place, 0)) for place, age in enumerate((*ages, 0))]


def _since(instant: int | None, now: int) -> int:
    return 0 if instant is None else max(0, now - instant)
