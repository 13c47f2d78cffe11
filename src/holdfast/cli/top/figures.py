"""One look at the fleet: who works, what is to do, what is late."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.runs.unserved import UnservedWork, find_unserved
from holdfast.store.protocols import Store
from holdfast.types.clock import MICROS, iso
from holdfast.types.fleet import FleetFigures, VersionBacklog, WorkerRow

AGES: Final = {"under 1h": 3600, "under 1d": 86_400, "under 7d": 7 * 86_400}
OLDER: Final = "older"
SILENT: Final = "silent"


class FleetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    figures: FleetFigures
    workers: list[WorkerRow]

    @property
    def at(self) -> int:
        return self.figures.at

    @property
    def alive(self) -> list[WorkerRow]:
        return [row for row in self.workers if row.is_alive(self.at)]

    @property
    def busy(self) -> int:
        return sum(row.busy for row in self.alive)

    @property
    def room(self) -> int:
        return sum(row.concurrency for row in self.alive if not row.draining)

    @property
    def records_per_second(self) -> float:
        return sum(row.records_per_second for row in self.alive)

    @property
    def ended_per_second(self) -> float:
        return sum(row.ended_per_second for row in self.alive)

    @property
    def hot(self) -> int:
        return sum(row.hot for row in self.alive)

    @property
    def unserved(self) -> UnservedWork:
        return find_unserved(self.figures, self.workers)

    @property
    def holds(self) -> dict[str, int]:
        return dict(zip((*AGES, OLDER), (count for _, count in self.figures.holds), strict=True))

    def state(self, row: WorkerRow) -> str:
        return SILENT if not row.is_alive(self.at) else "draining" if row.draining else "working"


async def take_snapshot(store: Store) -> FleetSnapshot:
    ages = tuple(seconds * MICROS for seconds in AGES.values())
    return FleetSnapshot(figures=await store.fleet_figures(ages=ages), workers=await store.workers())


def as_json(seen: FleetSnapshot) -> dict[str, Any]:
    """Lengths of time in seconds."""
    result = seen.figures
    return {
        "at": iso(seen.at),
        "records_per_second": round(seen.records_per_second, 2),
        "runs_ended_per_second": round(seen.ended_per_second, 2),
        "busy": seen.busy,
        "concurrency": seen.room,
        "runs": result.statuses,
        "dead": result.dead,
        "suspects": result.suspects,
        "waits": {
            "sleeping": result.statuses.get("waiting", 0),
            "for_input": result.statuses.get("pending_input", 0),
            "in_memory": seen.hot,
            "timers": result.timers,
            "next_timer_seconds": None if result.next_timer is None else result.next_timer / MICROS,
        },
        "unserved": {
            "lanes": [_unserved(each) for each in seen.unserved.lanes],
            "versions": [_unserved(each) for each in seen.unserved.versions],
            "schedules": [
                {"flow": each.flow, "schedules": each.schedules} for each in seen.unserved.schedules
            ],
        },
        "lanes": [
            {
                "lane": lane.lane,
                "ready": lane.ready,
                "oldest_seconds": lane.oldest / MICROS,
                "running": lane.running,
                "limited": lane.in_line,
            }
            for lane in result.lanes
        ],
        "holds": {"by_age": seen.holds, "oldest_seconds": result.oldest_hold / MICROS},
        "lag_seconds": {
            "timers": result.timer_lag / MICROS,
            "holds": result.hold_lag / MICROS,
            "schedules": result.schedule_lag / MICROS,
        },
        "outbox": {"waiting": result.outbox_waiting, "dead": result.outbox_dead},
        "workers": [_worker(seen, row) for row in seen.workers],
    }


def _unserved(each: VersionBacklog) -> dict[str, Any]:
    return {
        "lane": each.lane,
        "flow": each.flow,
        "version": each.version,
        "ready": each.ready,
        "oldest_seconds": each.oldest / MICROS,
    }


def _worker(seen: FleetSnapshot, row: WorkerRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": seen.state(row),
        "host": row.host,
        "pid": row.pid,
        "release": row.release,
        "lanes": row.lanes,
        "flows": sorted(set(row.versions.values())),
        "versions": row.versions,
        "concurrency": row.concurrency,
        "busy": row.busy,
        "in_memory": row.hot,
        "seen_seconds_ago": max(0, seen.at - row.seen_at) / MICROS,
        "up_seconds": max(0, seen.at - row.started_at) / MICROS,
        "clock_ahead_seconds": row.skew / MICROS,
        "records_per_second": round(row.records_per_second, 2),
        "runs_ended_per_second": round(row.ended_per_second, 2),
        "blocked_entities": [
            {
                "entity": each.entity,
                "run": each.run,
                "flow": each.flow,
                "nodes": each.nodes,
                "seconds": max(0, seen.at - each.since) / MICROS,
            }
            for each in row.blocked
        ],
    }
