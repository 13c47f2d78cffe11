"""What setting a schedule and firing it must compute in the same way."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from holdfast.errors import InputError
from holdfast.runs.schedules.cron import fires_at
from holdfast.runs.schedules.schedule import (
    HISTORY,
    Schedule,
    ScheduleFiring,
    SchedulePlan,
    TriggerRequest,
)
from holdfast.types.clock import iso
from holdfast.types.ids import RunId, derived_id


def with_next_at(schedule: Schedule) -> Schedule:
    """With the `next_at` that follows from its state."""
    standing = schedule.standing
    if standing.asked or standing.filling:
        # Always due: a request is served with the next sweep, also while the schedule is paused.
        return replace(schedule, next_at=0)
    return replace(schedule, next_at=_next_instant(schedule))


def next_start_of(schedule: Schedule) -> int | None:
    """For people and programs: when it fires next by itself, also while a request waits for a worker."""
    waits = schedule.standing.asked or schedule.standing.filling
    return _next_instant(schedule) if waits else schedule.next_at


def _next_instant(schedule: Schedule) -> int | None:
    standing = schedule.standing
    if standing.due is None or standing.paused:
        return None
    return fires_at(schedule.plan, schedule.tenant, schedule.name, standing.due)


def with_firing(schedule: Schedule, firing: ScheduleFiring) -> Schedule:
    """With one more entry in its history; the oldest one is dropped if there are too many."""
    standing = schedule.standing
    kept = (*standing.history, firing)[-HISTORY:]
    return replace(schedule, standing=replace(standing, history=kept))


def run_id_for(schedule: Schedule, what: int | TriggerRequest) -> RunId:
    """The run of an instant, or of a request: the same in every worker, however often it is tried."""
    mark = what.token if isinstance(what, TriggerRequest) else what
    return RunId(derived_id("schedule", schedule.tenant, schedule.name, mark))


def with_instant(plan: SchedulePlan, instant: int, given: Any = None) -> Any:
    """The input with the instant in it, if the plan has a field for that. Raises InputError."""
    found: Any = plan.input if given is None else given
    if not plan.stamp:
        return {} if found is None else found
    if found is not None and not isinstance(found, dict):
        raise InputError(
            f"the instant goes into the field {plan.stamp!r}, and the input is not an object.",
            hint='Give the input as an object: {"day": ""}.',
        )
    return {**cast("dict[str, Any]", found or {}), plan.stamp: iso(instant)}
