"""Calendars and instants for the tests of time."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.parse_calendar import calendar_from
from holdfast.types.clock import to_datetime, to_micros
from holdfast.types.duration import BusinessDuration

MINUTE = 60_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

NINE_TO_FIVE: dict[str, Any] = {"zone": "Europe/Amsterdam", "hours": {"mon-fri": "09:00-17:00"}}


def office_hours(**rules: Any) -> Calendar:
    return calendar_from("office", {**NINE_TO_FIVE, **rules})


def at(text: str) -> int:
    """An instant, from ISO 8601 with its offset."""
    return to_micros(datetime.fromisoformat(text))


def shown(instant: int) -> str:
    return to_datetime(instant).isoformat()


def hours(count: float) -> BusinessDuration:
    return BusinessDuration(micros=round(count * HOUR))


def days(count: int) -> BusinessDuration:
    return BusinessDuration(days=count)


def day(text: str) -> date:
    return date.fromisoformat(text)
