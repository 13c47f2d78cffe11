"""The fleet on the wire: workers, metrics, limits, dead letters, state of the store."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.api.schemas.common import moment
from holdfast.runs.dead_runs import DeadRun
from holdfast.runs.run_view import RunWire, ShownRun, run_wire
from holdfast.runs.unserved import find_unserved
from holdfast.store.rows import RunRow
from holdfast.types.clock import MICROS, iso
from holdfast.types.fleet import BlockedEntity, FleetFigures, WorkerRow
from holdfast.types.status import RunStatus


class BlockedEntityWire(msgspec.Struct, kw_only=True):
    """An entity that stays taken: its run was stopped at `since`, and the code of `nodes` still runs."""

    entity: str
    run: str
    flow: str
    nodes: str
    since: str


class WorkerWire(msgspec.Struct, kw_only=True):
    """`blocked_entities`, and `unstored`: runs that wait because a large value cannot be written to the blob
    store, with the reason (at most 100); both as of its last heartbeat. Such a run is `running`."""

    name: str
    host: str
    pid: int
    release: str
    alive: bool
    started_at: str | None
    seen_at: str | None
    lanes: list[str] | None
    flows: list[str]
    versions: dict[str, str]
    concurrency: int
    busy: int
    in_memory: int
    draining: bool
    skew_seconds: float
    records: int
    ended: int
    records_per_second: float
    ended_per_second: float
    blocked_entities: list[BlockedEntityWire] = []
    unstored: dict[str, str] = {}


def worker_wire(row: WorkerRow, now: int) -> WorkerWire:
    return WorkerWire(
        name=row.name,
        host=row.host,
        pid=row.pid,
        release=row.release,
        alive=row.is_alive(now),
        started_at=moment(row.started_at),
        seen_at=moment(row.seen_at),
        lanes=None if row.lanes is None else list(row.lanes),
        flows=sorted(set(row.versions.values())),
        versions=row.versions,
        concurrency=row.concurrency,
        busy=row.busy,
        in_memory=row.hot,
        draining=row.draining,
        skew_seconds=row.skew / MICROS,
        records=row.records,
        ended=row.ended,
        records_per_second=row.records_per_second,
        ended_per_second=row.ended_per_second,
        blocked_entities=[_blocked_wire(each) for each in row.blocked],
        unstored=row.unstored,
    )


def _blocked_wire(each: BlockedEntity) -> BlockedEntityWire:
    return BlockedEntityWire(
        entity=each.entity, run=each.run, flow=each.flow, nodes=each.nodes, since=iso(each.since)
    )


class LeaseWire(msgspec.Struct, kw_only=True):
    """A run that a process has now. `until`: another worker may take it over from then on, unless its process
    renews the lease. `term`: how often the run was claimed. `expired`: it was not renewed."""

    run: str
    flow: str
    version: str
    tenant: str
    status: RunStatus
    worker: str
    term: int
    until: str | None
    expired: bool
    recoveries: int


def lease_wire(row: RunRow, now: int) -> LeaseWire:
    return LeaseWire(
        run=row.id,
        flow=row.flow,
        version=row.version,
        tenant=row.tenant,
        status=row.status,
        worker=row.worker or "",
        term=row.term,
        until=moment(row.lease_until),
        expired=(row.lease_until or 0) <= now,
        recoveries=row.recoveries,
    )


class LaneWire(msgspec.Struct, kw_only=True):
    """`limited`: ready runs that wait for a limit."""

    lane: str
    ready: int
    running: int
    limited: int
    oldest_seconds: float


class UnservedRunsWire(msgspec.Struct, kw_only=True):
    """Ready runs that no live worker takes: none serves the lane, or none has the code of the version."""

    lane: str
    flow: str
    version: str
    ready: int
    oldest_seconds: float


class UnservedSchedulesWire(msgspec.Struct, kw_only=True):
    """Schedules that will fire for a flow that no live worker serves."""

    flow: str
    schedules: int


class FiguresWire(msgspec.Struct, kw_only=True):
    """At one moment, over all tenants. Lags: the age of the oldest item that is due. `suspects`: runs that
    lost two workers in a row without progress. `timers`: waits for a time."""

    at: str
    lanes: list[LaneWire]
    statuses: dict[str, int]
    dead: int
    pending_holds: int
    oldest_hold_seconds: float
    timer_lag_seconds: float
    hold_lag_seconds: float
    schedule_lag_seconds: float
    outbox_waiting: int
    outbox_dead: int
    suspects: int
    timers: int
    next_timer_seconds: float | None
    unserved_runs: list[UnservedRunsWire]
    unserved_schedules: list[UnservedSchedulesWire]


def figures_wire(found: FleetFigures, workers: list[WorkerRow]) -> FiguresWire:
    unserved = find_unserved(found, workers)
    return FiguresWire(
        at=moment(found.at) or "",
        lanes=[
            LaneWire(
                lane=each.lane,
                ready=each.ready,
                running=each.running,
                limited=each.in_line,
                oldest_seconds=each.oldest / MICROS,
            )
            for each in found.lanes
        ],
        statuses=found.statuses,
        dead=found.dead,
        pending_holds=sum(count for _, count in found.holds),
        oldest_hold_seconds=found.oldest_hold / MICROS,
        timer_lag_seconds=found.timer_lag / MICROS,
        hold_lag_seconds=found.hold_lag / MICROS,
        schedule_lag_seconds=found.schedule_lag / MICROS,
        outbox_waiting=found.outbox_waiting,
        outbox_dead=found.outbox_dead,
        suspects=found.suspects,
        timers=found.timers,
        next_timer_seconds=None if found.next_timer is None else found.next_timer / MICROS,
        unserved_runs=[
            UnservedRunsWire(
                lane=each.lane,
                flow=each.flow,
                version=each.version,
                ready=each.ready,
                oldest_seconds=each.oldest / MICROS,
            )
            for each in unserved.runs
        ],
        unserved_schedules=[
            UnservedSchedulesWire(flow=each.flow, schedules=each.schedules) for each in unserved.schedules
        ],
    )


class LimitWire(msgspec.Struct, kw_only=True):
    """`fixed`: an operator set it; else the flow declares it. `items:KEY` is a limit that items of maps share
    (`limit_key=`): `running` and `waiting` count items, `holders` and `waiters` have the run of each, in the
    order in which they got, or get, their places."""

    name: str
    concurrency: int | None
    rate: str | None
    fixed: bool
    running: int
    waiting: int
    holders: list[str]
    waiters: list[str]


class SetLimit(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A missing field means no limit; a concurrency of 0 stops the flow. `rate`: `100/min`."""

    concurrency: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] | None = None
    rate: Annotated[str, msgspec.Meta(max_length=60)] | None = None


class DeathWire(msgspec.Struct, kw_only=True):
    worker: str
    at: str | None
    head: int
    status: str
    nodes: list[str]
    unknown: str


class DeadRunWire(msgspec.Struct, kw_only=True):
    """`suspects`: nodes by how often they were running when a worker stopped heartbeating."""

    run: RunWire
    deaths: list[DeathWire]
    suspects: dict[str, int]


def dead_run_wire(dead: DeadRun, run: ShownRun) -> DeadRunWire:
    return DeadRunWire(
        run=run_wire(run),
        deaths=[
            DeathWire(
                worker=each.death.worker,
                at=moment(each.death.at),
                head=each.death.head,
                status=each.death.status,
                nodes=list(each.nodes),
                unknown=each.unknown,
            )
            for each in dead.deaths
        ],
        suspects=dict(dead.suspects),
    )


class StatusWire(msgspec.Struct, kw_only=True):
    """The state of the server and its store. `weak`: settings that weaken durability, each with what can be
    lost. `problems`: damage in the store."""

    release: str
    store: str
    schema: int
    size: int
    problems: list[str]
    drift: list[str]
    weak: list[str]
    unfinished_migrations: list[int]
    blobs: int
    missing_blobs: int
    lapsed_runs: int
    workers: int
    flows: dict[str, str]
