"""The slots of a worker: which runs in memory are at work, and which only wait.

A run that waits, for a person or a time, uses no slot. It stays in memory as long as no other run needs the
room; then it is parked, and any worker claims it when it can go on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from typing import Final

from holdfast.runs.driver.driver import Driver
from holdfast.types.ids import RunId

SOON: Final = 0.1
"""Seconds before its wait ends from which a run counts as busy: its slot is not given away just before it is
needed."""


class WorkerSlots:
    """`runs`: those that the worker has claimed; `drivers`: those of them that are loaded."""

    def __init__(
        self, runs: Collection[RunId], drivers: Mapping[RunId, Driver], concurrency: int, hot_limit: int
    ) -> None:
        self._runs = runs
        self._drivers = drivers
        self.concurrency = concurrency
        self.hot_limit = hot_limit

    @property
    def busy(self) -> int:
        return len(self._runs) - self.hot

    @property
    def hot(self) -> int:
        return len(self._idle())

    @property
    def free(self) -> int:
        """How many runs may be claimed now."""
        return min(self.concurrency - self.busy, self.concurrency + self.hot_limit - len(self._runs))

    def make_room(self) -> None:
        """Parks runs that wait: the first ones, if memory is full of them, and those that would wake up and
        find no slot, the longest wait first."""
        idle = self._idle()
        _park(idle[: max(len(self._runs) - self.hot_limit, 0)])
        asleep = sorted((driver for driver in idle if driver.wakes_in < inf), key=_wakes_in, reverse=True)
        _park(asleep[: max(self.busy + len(asleep) - self.concurrency, 0)])

    def park_idle(self) -> None:
        _park(self._idle())

    def _idle(self) -> list[Driver]:
        """In the order in which they were claimed."""
        found = [self._drivers.get(run) for run in self._runs]
        return [driver for driver in found if driver is not None and _is_idle(driver)]


def _is_idle(driver: Driver) -> bool:
    return driver.session.idle and driver.wakes_in > SOON


def _wakes_in(driver: Driver) -> float:
    return driver.wakes_in


def _park(drivers: list[Driver]) -> None:
    for driver in drivers:
        driver.evict()
