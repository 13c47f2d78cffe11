"""Instants that passed without a run because no worker served the schedule: which of them still count."""

from __future__ import annotations

from typing import Final

from holdfast.runs.schedules.cron import fires_at, newest
from holdfast.runs.schedules.schedule import Schedule

AT_MOST: Final = 1000  # instants that `missed all` catches up


def instants_to_start(schedule: Schedule, due: int, now: int) -> tuple[list[int], bool]:
    """Of the due instants, those that count: the newest, or all of them. And whether there were more than are
    caught up."""
    plan = schedule.plan
    count = AT_MOST + 1 if plan.missed == "all" else 2
    found = [i for i in newest(plan, due, now, count) if start_of(schedule, i) <= now] or [due]
    if plan.missed != "all":
        return found[-1:], False
    return found[-AT_MOST:], len(found) > AT_MOST


def is_missed(schedule: Schedule, instant: int, now: int) -> bool:
    """With `missed skip`: it is too late to start it."""
    plan = schedule.plan
    return plan.missed == "skip" and now - start_of(schedule, instant) > plan.grace


def start_of(schedule: Schedule, instant: int) -> int:
    """When it starts, with its jitter."""
    return fires_at(schedule.plan, schedule.tenant, schedule.name, instant)
