"""Time in a trial: it passes normally while code runs, and jumps over waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from holdfast.types.clock import MICROS, SystemClock

_SLICE = 0.005  # seconds between two looks at whether anything works
_TURNS = 3


class TrialClock:
    """`jumped` outlives the process: the next process continues from the time at which this one was
    killed."""

    def __init__(self, start: int, began: float, file: Path) -> None:
        self._start = start
        self._began = began
        self._file = file
        self._real = SystemClock()
        self._jumped = int(file.read_text()) if file.exists() else 0
        self.busy: Callable[[], bool] = lambda: False

    def now(self) -> int:
        return self._start + int(self.monotonic() * MICROS)

    def monotonic(self) -> float:
        return self._real.monotonic() - self._began + self._jumped / MICROS

    def jump(self, micros: int) -> None:
        self._jumped += max(0, micros)
        self._file.write_text(str(self._jumped))

    async def sleep(self, seconds: float) -> None:
        until = self.now() + round(seconds * MICROS)
        idle = 0
        while self.now() < until:
            idle = 0 if self.busy() else idle + 1
            if idle > _TURNS:
                self.jump(until - self.now())
                return
            left = (until - self.now()) / MICROS
            await asyncio.sleep(0 if idle else min(_SLICE, max(left, 0.0)))
