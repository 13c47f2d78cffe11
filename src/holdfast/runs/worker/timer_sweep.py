"""Timers that are due are fired, by any worker for all runs."""

from __future__ import annotations

from holdfast.errors import StoreError
from holdfast.runs.worker.reaper import BATCH
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import MICROS, Clock


class TimerSweep:
    """Timers of parked runs that are due become inbox rows of their runs (D-30)."""

    def __init__(self, store: Store, clock: Clock, *, every: float = 1.0) -> None:
        self.store = store
        self.clock = clock
        self.every = every

    async def sweep(self) -> int:
        total = 0
        while True:
            fired = await self.store.fire_timers(limit=BATCH)
            total += fired
            if fired < BATCH:
                return total

    async def serve(self) -> None:
        """Until cancelled. Sleeps until the next timer is due, but never longer than `every`."""
        while True:
            pause = self.every
            try:
                await self.sweep()
                pause = self._pause(await self.store.next_timer())
            except StoreError as error:
                log.warning("timers could not be read: %s", error)
            await self.clock.sleep(pause)

    def _pause(self, due: int | None) -> float:
        if due is None:
            return self.every
        return min(self.every, max(0.001, (due - self.store.now()) / MICROS))
