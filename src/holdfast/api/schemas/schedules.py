"""Schedules on the wire. Durations are texts such as `15m` or `90s`, times are RFC 3339."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import msgspec

from holdfast.api.schemas.common import Name, moment
from holdfast.api.schemas.input_guard import require_outside
from holdfast.runs.schedules.derive import next_start_of
from holdfast.runs.schedules.schedule import Schedule, ScheduleFiring
from holdfast.types.clock import MICROS

Length = Annotated[str, msgspec.Meta(max_length=60, description="`15m`, `90s`, `1h30m`")]
Moment = Annotated[str, msgspec.Meta(max_length=60)]


class PutSchedule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Exactly one of `cron`, `every` and `at`. Missing fields have the defaults of a new schedule."""

    flow: Name
    cron: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    every: Length | None = None
    at: Moment | None = None
    zone: Annotated[str, msgspec.Meta(max_length=60)] = "UTC"
    anchor: Moment | None = None
    start: Moment | None = None
    end: Moment | None = None
    jitter: Length | None = None
    missed: Literal["skip", "last", "all"] = "last"
    grace: Length = "1m"
    overlap: Literal["allow", "skip", "wait", "cancel"] | None = None
    input: dict[str, Any] | None = None
    stamp: Name | None = None
    lane: Name | None = None
    priority: Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)] | None = None
    thread: Name | None = None
    instance_key: Name | None = None
    deployment: Name | None = None
    mode: Literal["barrier", "strict", "exit"] | None = None

    def __post_init__(self) -> None:
        require_outside({**(self.input or {}), self.stamp or "": None})


class PauseSchedule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class TriggerSchedule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    input: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        require_outside(self.input)


class FillSchedule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A range of the past, both ends included. `one_by_one`: each run starts when the one before it has
    ended."""

    first: Moment
    last: Moment
    one_by_one: bool = False
    dry_run: bool = False


class ScheduleFill(msgspec.Struct, kw_only=True):
    """The instants of the range. Those that have a run are left as they are."""

    items: list[str]


class FiringWire(msgspec.Struct, kw_only=True):
    """What became of an instant. `last`: the last of several that were missed; `instant` is the first."""

    instant: str | None
    at: str | None
    outcome: Literal["started", "triggered", "filled", "skipped", "missed", "failed"]
    run: str | None
    reason: str
    last: str | None


def firing_wire(firing: ScheduleFiring) -> FiringWire:
    return FiringWire(
        instant=moment(firing.instant),
        at=moment(firing.at),
        outcome=cast("Any", firing.outcome),
        run=firing.run,
        reason=firing.reason,
        last=moment(firing.last),
    )


class ScheduleTrigger(msgspec.Struct, kw_only=True):
    """The run exists once a worker that serves the flow has started it."""

    run: str


class Instants(msgspec.Struct, kw_only=True):
    items: list[str]


class ScheduleWire(msgspec.Struct, kw_only=True):
    """`next_at`: its next start, with its jitter; null if it is paused or has ended."""

    name: str
    flow: str
    cron: str | None
    every: str | None
    at: str | None
    zone: str
    anchor: str | None
    start: str | None
    end: str | None
    jitter: str | None
    missed: str
    grace: str
    overlap: str
    input: Any
    stamp: str | None
    options: dict[str, Any]
    paused: bool
    over: bool
    reason: str
    by: str
    declared: bool
    next_at: str | None
    last_at: str | None
    last_run: str | None
    passed: int
    trouble: str
    trouble_at: str | None
    revision: int
    updated_at: str | None


def schedule_wire(schedule: Schedule) -> ScheduleWire:
    plan, standing = schedule.plan, schedule.standing
    return ScheduleWire(
        name=schedule.name,
        flow=schedule.flow,
        cron=plan.cron or None,
        every=_length(plan.every) if plan.every else None,
        at=moment(plan.at),
        zone=plan.zone,
        anchor=moment(plan.anchor) if plan.every else None,
        start=moment(plan.start),
        end=moment(plan.end),
        jitter=_length(plan.jitter) if plan.jitter else None,
        missed=plan.missed,
        grace=_length(plan.grace),
        overlap=plan.overlap,
        input=plan.input,
        stamp=plan.stamp or None,
        options=plan.options,
        paused=schedule.paused,
        over=schedule.over,
        reason=standing.reason,
        by=standing.by,
        declared=standing.declared,
        next_at=moment(next_start_of(schedule)),
        last_at=moment(schedule.last_at),
        last_run=schedule.last_run,
        passed=standing.passed,
        trouble=standing.trouble,
        trouble_at=moment(standing.trouble_at),
        revision=schedule.revision,
        updated_at=moment(schedule.updated_at),
    )


def _length(micros: int) -> str:
    return f"{micros / MICROS:.15g}s"
