"""Schedules as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.output.json_output import brief
from holdfast.types.clock import MICROS, iso
from holdfast.types.duration import format_duration
from holdfast.types.human_time import human_duration

if TYPE_CHECKING:
    from holdfast.runs.schedules.schedule import Schedule, ScheduleFiring, SchedulePlan


def schedule_cells(each: Schedule, now: int, *, tenants: bool) -> tuple[str, ...]:
    whose = (each.tenant,) if tenants else ()
    last = (each.last_run or "")[:8]
    return (
        each.name,
        *whose,
        each.flow,
        when_text(each.plan),
        next_text(each, now),
        last,
        each.standing.trouble,
    )


def next_text(each: Schedule, now: int) -> str:
    if each.standing.asked:
        return "now, by hand"
    if each.standing.filling:
        return "now, filling in"
    if each.paused:
        return "paused"
    if each.next_at is None:
        return "never again"
    if each.next_at > now:
        return moment_text(each.next_at, each.plan)
    return f"overdue for {human_duration(now - each.next_at)}"


def when_text(plan: SchedulePlan) -> str:
    if plan.at is not None:
        return f"at {moment_text(plan.at, plan)}"
    return f"every {length_text(plan.every)}" if plan.every else f"{plan.cron} ({plan.zone})"


def length_text(micros: int) -> str:
    from datetime import timedelta

    return format_duration(timedelta(microseconds=micros))


def moment_text(instant: int, plan: SchedulePlan) -> str:
    """In the schedule's time zone, in which it was written."""
    from holdfast.runs.schedules.cron import local

    if instant < MICROS:
        return ""
    return f"{local(instant, plan.zone):%a %Y-%m-%d %H:%M:%S %Z}"


def schedule_json(each: Schedule) -> dict[str, Any]:
    plan, standing = each.plan, each.standing
    seconds = {"every": plan.every, "jitter": plan.jitter, "grace": plan.grace}
    moments = {"at": plan.at, "start": plan.start, "end": plan.end}
    return {
        "name": each.name,
        "tenant": each.tenant,
        "flow": each.flow,
        "cron": plan.cron or None,
        "zone": plan.zone,
        **{name: value / MICROS if value else None for name, value in seconds.items()},
        **{name: None if value is None else iso(value) for name, value in moments.items()},
        "anchor": iso(plan.anchor) if plan.every else None,
        "missed": plan.missed,
        "overlap": plan.overlap,
        "input": plan.input,
        "stamp": plan.stamp or None,
        "options": plan.options,
        "paused": each.paused,
        "reason": standing.reason or None,
        "next_at": iso(each.next_at) if each.next_at else None,
        "last_at": iso(each.last_at) if each.last_at is not None else None,
        "last_run": each.last_run,
        "passed_over": standing.passed,
        "trouble": standing.trouble or None,
        "declared": standing.declared,
        "by": standing.by,
    }


def firing_json(firing: ScheduleFiring) -> dict[str, Any]:
    return {
        "instant": iso(firing.instant),
        "at": iso(firing.at),
        "outcome": firing.outcome,
        "run": firing.run,
        "reason": firing.reason or None,
        "last": None if firing.last is None else iso(firing.last),
    }


def firing_cells(firing: ScheduleFiring, plan: SchedulePlan) -> tuple[str, ...]:
    upto = "" if firing.last is None else f" to {moment_text(firing.last, plan)}"
    late = human_duration(max(0, firing.at - firing.instant))
    return moment_text(firing.instant, plan) + upto, firing.outcome, late, firing.run or "", firing.reason


def schedule_fields(found: Schedule, now: int) -> list[tuple[str, str]]:
    """All its settings and how it stands; what is not set is left out."""
    plan, standing = found.plan, found.standing
    pairs = [
        ("schedule", found.name),
        ("flow", found.flow),
        ("when", when_text(plan)),
        ("from", moment_text(plan.start, plan) if plan.start is not None else ""),
        ("until", moment_text(plan.end, plan) if plan.end is not None else ""),
        ("jitter", length_text(plan.jitter) if plan.jitter else ""),
        (
            "missed",
            plan.missed + (f", later than {length_text(plan.grace)}" if plan.missed == "skip" else ""),
        ),
        ("overlap", plan.overlap),
        ("passed over", str(standing.passed or "")),
        ("input", brief(plan.input) if plan.input is not None else ""),
        ("scheduled time in", plan.stamp),
        *((key.replace("_", " "), str(value)) for key, value in plan.options.items()),
        ("next", next_text(found, now)),
        ("paused", (standing.reason or "no reason given") if found.paused else ""),
        ("last", moment_text(found.last_at, plan) if found.last_at is not None else ""),
        ("last run", found.last_run or ""),
        ("trouble", standing.trouble),
        ("set by", f"{standing.by}{', declared in code' if standing.declared else ''}"),
    ]
    return [(what, value) for what, value in pairs if value]
