"""Waits of a declared length, measured on a clock that nobody sets while this process has the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.engine.messages import TimerFired
from holdfast.model.position import NAP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model.position import Exec
    from holdfast.runs.driver.driver import Driver


class Elapsing:
    """A clock that is set back makes no back-off, sleep or time limit longer than it was declared.

    The wake time that is stored stays what it is: whoever loads the run later goes by that. A node that waits
    until a moment goes by the wall clock alone, because that moment is what was asked for.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        # token -> when it is over, in seconds of the monotonic clock
        self._over: dict[str, float] = {}

    def left(self) -> float | None:
        """Seconds until the first of all known waits is over; None where nothing waits for a time."""
        wakes = dict(self._wakes())
        self._over = {token: over for token, over in self._over.items() if token in wakes}
        return min((self._left(token, wake) for token, wake in wakes.items()), default=None)

    def over(self) -> list[TimerFired]:
        """Waits that have lasted as long as declared and that the store, by its clock, lets wait on."""
        now = self.driver.runtime.clock.now()
        wakes = dict(self._wakes())
        late = [token for token, wake in wakes.items() if wake > now and self._left(token, wake) <= 0]
        return [TimerFired(token=token, inbox=0) for token in late]

    def _left(self, token: str, wake: int) -> float:
        clock = self.driver.runtime.clock
        by_wall = max(0.0, (wake - clock.now()) / 1e6)
        if not self._has_length(token):
            return by_wall
        since = clock.monotonic()
        return max(0.0, min(by_wall, self._over.setdefault(token, since + by_wall) - since))

    def _wakes(self) -> Iterator[tuple[str, int]]:
        pos = self.driver.pos
        for execution in pos.execs.values():
            if execution.wake_at is not None and execution.phase in ("delay", "children"):
                yield execution.token, execution.wake_at
            for sub in execution.subs.values():
                if not sub.done and sub.name == NAP and sub.hold in pos.timers:
                    yield sub.hold, sub.value
        yield from pos.join_wakes.items()

    def _has_length(self, token: str) -> bool:
        key = self.driver.pos.timers.get(token)
        execution = self.driver.pos.execs.get(key) if key is not None else None
        return execution is None or not token.startswith("sleep:") or self._sleeps_so_long(execution)

    def _sleeps_so_long(self, execution: Exec) -> bool:
        spec = self.driver.node(execution).timer
        return spec is not None and spec.duration is not None
