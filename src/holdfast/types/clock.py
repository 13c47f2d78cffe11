"""Time is passed in. Instants inside the engine are integers: microseconds since the epoch, UTC."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol

from holdfast.errors import InputError

MICROS = 1_000_000


class Clock(Protocol):
    """A source of time that can also sleep. Tests pass one that they advance themselves."""

    def now(self) -> int:
        """Microseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; the safety margins of leases are measured with it."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        # Here, because asyncio costs 30 ms to import and every command line imports this module.
        import asyncio

        await asyncio.sleep(seconds)


class SharedClock(SystemClock):
    """The wall clock of a resource that several machines share, such as a store: an instant from it means the
    same on all of them, even if their own clocks are wrong. Sleeping uses the local clock."""

    def __init__(self, now: Callable[[], int]) -> None:
        # Not a method around it: each step of each run asks for the time.
        self.now = now


START_OF_TIME: Final = -62_135_596_800 * MICROS
END_OF_TIME: Final = 253_402_300_799 * MICROS
"""The first and the last second that a datetime can represent in UTC. Instants outside are shown as these."""


def to_datetime(micros: int) -> datetime:
    shown = max(START_OF_TIME, min(micros, END_OF_TIME))
    return datetime.fromtimestamp(shown // MICROS, UTC) + timedelta(microseconds=shown % MICROS)


def to_micros(moment: datetime) -> int:
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * MICROS + delta.microseconds


def require_moment(moment: datetime, what: str) -> int:
    """Microseconds of a moment that a caller gave with its zone. Raises InputError for one that is outside of
    the years 1 to 9999 in UTC."""
    found = to_micros(moment)
    if not START_OF_TIME <= found < END_OF_TIME + MICROS:
        raise InputError(
            f"{what} {moment.isoformat()} is not in the years 1 to 9999 in UTC.",
            hint="Write it as 2027-01-31T09:00:00Z.",
        )
    return found


def micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def iso(micros: int) -> str:
    """An instant as it is written in JSON: `2026-01-05T10:00:00Z`."""
    shown = max(START_OF_TIME, min(micros, END_OF_TIME))
    second, rest = divmod(shown, MICROS)
    return f"{_second(second)}.{rest:06d}Z" if rest else f"{_second(second)}Z"


@lru_cache(maxsize=1024)
def _second(second: int) -> str:
    """Long lists have many instants of the same second."""
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def instant(when: datetime | timedelta | int, now: int) -> int:
    """Microseconds of an instant, given as such, as a datetime with a time zone, or as a timedelta from now.

    Raises ValueError for a datetime without a time zone, and for an instant outside the years 1970 to
    9999."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(f"{when.isoformat()} has no time zone; add one, such as UTC")
        found = to_micros(when)
        if not START_OF_TIME <= found < END_OF_TIME + MICROS:
            raise ValueError(f"{when.isoformat()} is out of range (years 1 to 9999 in UTC)")
        return found
    found = now + micros(when) if isinstance(when, timedelta) else when
    if not 0 <= found <= END_OF_TIME:
        raise ValueError("timestamp out of range (years 1970 to 9999)")
    return found
