"""Time is passed in. Instants inside the engine are integers: microseconds since the epoch, UTC."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

MICROS = 1_000_000


class Clock(Protocol):
    """What tells the time and lets it pass; tests pass one that they move by hand."""

    def now(self) -> int:
        """Microseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; leases' own margins are measured on it (D-33)."""
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
    """The wall clock of something that many machines share, such as a store: what one of them reckons from it
    means the same to the others, however wrong their own clocks are. Time passes as it does here."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now

    def now(self) -> int:
        return self._now()


END_OF_TIME: Final = 253_402_300_799 * MICROS
"""The last second that a date can name. What lies behind it is shown as this."""


def to_datetime(micros: int) -> datetime:
    shown = min(micros, END_OF_TIME)
    return datetime.fromtimestamp(shown // MICROS, UTC) + timedelta(microseconds=shown % MICROS)


def to_micros(moment: datetime) -> int:
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * MICROS + delta.microseconds


def micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def iso(micros: int) -> str:
    """As JSON has an instant: `2026-01-05T10:00:00Z`."""
    return to_datetime(micros).isoformat().replace("+00:00", "Z")


def instant(when: datetime | timedelta | int, now: int) -> int:
    """Microseconds of a moment, given as such, as a time with a zone, or as so long from now.

    Raises ValueError for a time without a zone, and for one that no date can name."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(f"{when.isoformat()} has no zone; write it with one, such as UTC")
        return to_micros(when)
    found = now + micros(when) if isinstance(when, timedelta) else when
    if not 0 <= found <= END_OF_TIME:
        raise ValueError("that moment lies outside of all dates")
    return found
