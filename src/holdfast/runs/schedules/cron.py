"""The instants of a schedule (cron, every, at): a pure function of its plan, by its time zone.

A cron expression with a fixed hour fires once on the day the clocks go back, and right after the gap on the
day they go forward; one that fires all day long (`*/15 * * * *`) follows the time that passes (ADR 33).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from itertools import islice, takewhile
from typing import Final

from cronsim import CronSim

from holdfast.errors import InputError
from holdfast.runs.schedules.schedule import SchedulePlan
from holdfast.types.clock import END_OF_TIME, MICROS, to_datetime, to_micros
from holdfast.types.text import clean_text

_HOUR: Final = 3600 * MICROS
# How far back to look for the newest instant; each is tried before the next, longer one.
_SPANS: Final = (_HOUR, 24 * _HOUR, 31 * 24 * _HOUR, 366 * 24 * _HOUR)


def zone_info(name: str) -> tzinfo:
    """Raises InputError for a name that is not known here."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(
            f"{clean_text(repr(name), 60)} is not a time zone that is known here.",
            hint="Write it as Europe/Berlin. A machine without zone data gets it by: pip install tzdata.",
        ) from None


def instants(plan: SchedulePlan, after: int) -> Iterator[int]:
    """Those later than `after`, in order, from the plan's start to its end."""
    begin = after if plan.start is None else max(after, plan.start - 1)
    last = END_OF_TIME if plan.end is None else plan.end
    return takewhile(lambda instant: instant <= last, _instants(plan, begin))


def _instants(plan: SchedulePlan, after: int) -> Iterator[int]:
    if plan.at is not None:
        return iter([plan.at] if plan.at > after else [])
    return _every(plan, after) if plan.every else _cron(plan, after)


def _every(plan: SchedulePlan, after: int) -> Iterator[int]:
    instant = plan.anchor + ((after - plan.anchor) // plan.every + 1) * plan.every
    while True:
        yield instant
        instant += plan.every


def _cron(plan: SchedulePlan, after: int) -> Iterator[int]:
    begin = datetime.fromtimestamp(after // MICROS, zone_info(plan.zone))
    last = after
    for found in CronSim(plan.cron, begin):
        instant = to_micros(found.astimezone(UTC))
        # Two local times may be the same instant when the clocks go forward.
        if instant > last:
            yield instant
            last = instant


def following(plan: SchedulePlan, after: int) -> int | None:
    """None: never again."""
    return next(instants(plan, after), None)


def newest(plan: SchedulePlan, first: int, upto: int, count: int = 1) -> list[int]:
    """Up to `count` instants, the latest of those from `first` to `upto`, in order. However long ago `first`
    is, few more are computed than wanted."""
    for span in (*_SPANS, upto - first + 1):
        begin = max(first, upto - span)
        found = list(takewhile(lambda instant: instant <= upto, instants(plan, begin - 1)))
        if len(found) >= count or begin == first:
            return found[-count:]
    return []


def upcoming(plan: SchedulePlan, after: int, count: int) -> list[int]:
    return list(islice(instants(plan, after), count))


def fires_at(plan: SchedulePlan, tenant: str, name: str, instant: int) -> int:
    """With its jitter, which depends only on the schedule and the instant: every worker and every retry
    computes the same."""
    if not plan.jitter:
        return instant
    digest = sha256(f"{tenant}\0{name}\0{instant}".encode()).digest()
    return instant + int.from_bytes(digest[:8], "big") % (plan.jitter + 1)


def local(instant: int, zone: str) -> datetime:
    return to_datetime(instant).astimezone(zone_info(zone))
