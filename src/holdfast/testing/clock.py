"""A clock that tests advance."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from holdfast.types.clock import MICROS, micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2030, 1, 1, tzinfo=UTC)
# How often a sleeper on an automatic clock lets others run before it moves the time.
_TURNS = 20


class _Sleeper(NamedTuple):
    until: int
    woken: asyncio.Future[None]


class FakeClock:
    """Does not move until `advance`. Sleepers wake when their time has come, each on its own event loop.

    With `auto=True` the time jumps to the next sleeper as soon as a sleeper finds nothing else to run on its
    loop, so that a test of backoffs and timeouts needs no second task.
    """

    def __init__(self, start: datetime = START, *, auto: bool = False) -> None:
        # Workers may sleep on this clock in other threads than the test that advances it.
        self._lock = threading.Lock()
        self._micros = self._start = to_micros(start)
        # Difference between the wall clock and the elapsed time.
        self._set = 0
        self._sleepers: list[_Sleeper] = []
        self._auto = auto

    def now(self) -> int:
        return self._micros + self._set

    def monotonic(self) -> float:
        return (self._micros - self._start) / MICROS

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        sleeper = self._add_sleeper(seconds)
        try:
            if self._auto:
                await self._move_when_idle(sleeper)
            await sleeper.woken
        finally:
            self._forget(sleeper)

    @property
    def sleeping(self) -> int:
        """The number of sleepers: a test waits until its subject sleeps, then advances."""
        with self._lock:
            return len(self._sleepers)

    def advance(
        self,
        by: timedelta | None = None,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> None:
        step = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        self._move(lambda: self._micros + micros(step + (by or timedelta())))

    def set_by(self, by: timedelta) -> None:
        """Set the wall clock, forward or back. No time passes: `monotonic` and sleepers are not affected."""
        with self._lock:
            self._set += micros(by)

    def _add_sleeper(self, seconds: float) -> _Sleeper:
        with self._lock:
            until = self._micros + round(seconds * MICROS)
            sleeper = _Sleeper(until, asyncio.get_running_loop().create_future())
            self._sleepers.append(sleeper)
            return sleeper

    def _forget(self, sleeper: _Sleeper) -> None:
        with self._lock:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def _move(self, to: Callable[[], int]) -> None:
        with self._lock:
            moment = to()
            if moment < self._micros:
                raise ValueError("time does not go back")
            self._micros = moment
            woken = [sleeper for sleeper in self._sleepers if sleeper.until <= moment]
            self._sleepers = [sleeper for sleeper in self._sleepers if sleeper.until > moment]
        # In the order of their times, as on a real clock.
        for sleeper in sorted(woken, key=_until):
            loop = sleeper.woken.get_loop()
            if not loop.is_closed():
                # A future may be completed only from its own loop.
                loop.call_soon_threadsafe(_finish, sleeper.woken)

    async def _move_when_idle(self, sleeper: _Sleeper) -> None:
        """The next sleeper to wake moves the time, after all other tasks have run since the last move."""
        turns, seen = 0, self._micros
        while not sleeper.woken.done():
            await asyncio.sleep(0)
            turns, seen = (turns + 1, seen) if seen == self._micros else (0, self._micros)
            # Only the earliest sleeper moves the time: a later one would jump over it.
            if turns >= _TURNS and self._next_wake() == sleeper.until:
                self._move(self._next_wake)

    def _next_wake(self) -> int:
        return min((sleeper.until for sleeper in self._sleepers), default=self._micros)


def _until(sleeper: _Sleeper) -> int:
    return sleeper.until


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
