"""Letting go of a run that is ours: it parks where it waits, or is given back at once."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from holdfast.engine.dataflow import Problem
from holdfast.engine.decision import Decision
from holdfast.engine.end import fail_run
from holdfast.engine.messages import Recovered
from holdfast.errors import HoldfastError, LeaseLostError
from holdfast.model.position import waits_inside
from holdfast.runs.driver.park__handing import let_go
from holdfast.telemetry import crashpoint, log
from holdfast.types.record import Park
from holdfast.types.status import PARKED, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.driver.driver import Driver
    from holdfast.store.protocols import RunRow


class Parker:
    """`leaving`: that our lease ends now is our own doing."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.leaving = False

    async def park(self) -> RunStatus | None:
        """Let go of the run, durably. None where mail came meanwhile (D-29)."""
        driver = self.driver
        await asyncio.sleep(0)
        if driver.awake.is_set() or driver.underway.is_working():
            # Something was about to happen: another question of the same handler, an end.
            return None
        await driver.underway.suspend_all()
        if driver.underway.done:
            return None
        if not driver.pos.holds and not driver.pos.timers:
            if driver.writer.write(self._stalled()):
                await driver.recorder.committed(driver.queue, driver.pos.head)
            return None
        crashpoint("before_park")
        status = RunStatus.pending_input if driver.pos.holds else RunStatus.waiting
        self.leaving = True
        parked = await self._let_go(Park(status, driver.box.seen))
        self.leaving = parked
        if not parked:
            return await self._not_parked()
        crashpoint("after_park")
        return status

    async def _let_go(self, how: Park) -> bool:
        """With the last records in one commit, where there are any."""
        driver, queue = self.driver, self.driver.queue
        queue.park, queue.parked = how, False
        try:
            await driver.recorder.committed(queue, driver.pos.head)
        finally:
            queue.park = None
        if queue.parked:
            return True
        store = driver.runtime.store
        park = partial(
            store.park, driver.lease, status=how.status, inbox_seen=how.inbox_seen, ready_at=how.ready_at
        )
        return await driver.patiently(park)

    async def _not_parked(self) -> RunStatus | None:
        driver = self.driver
        row = await driver.patiently(partial(driver.runtime.store.get_run, driver.run))
        if row is None or row.term != driver.lease.term:
            driver.is_lost = True
            raise LeaseLostError(f"run {driver.run} is not ours any more")
        if row.worker is None and row.status in PARKED:
            # It was done the first time, and the answer was lost on its way to us.
            self.leaving = True
            return row.status
        return None

    def _stalled(self) -> Decision:
        driver = self.driver
        decision = driver.decision()
        names = ", ".join(sorted(driver.node(e).id for e in driver.pos.execs.values())) or "no node"
        fail_run(decision, Problem("stall", f"work remains but nothing can start ({names})", ""))
        driver.underway.done.append(Recovered())
        return decision

    async def leave(self) -> RunStatus:
        """Nothing runs any more: park where the run waits anyway, else give it back."""
        pos = self.driver.pos
        starting = any(e.phase == "work" and not waits_inside(pos, e) for e in pos.execs.values())
        if not starting and (pos.holds or pos.timers):
            parked = await self.park()
            if parked is not None:
                return parked
        await self.release()
        return RunStatus.resumable

    async def _resting(self, _row: RunRow) -> RunStatus:
        return self.driver.writer.resting or RunStatus.resumable

    async def release(self) -> None:
        """Claimable again at once, by anybody."""
        driver, store = self.driver, self.driver.runtime.store
        # Whoever wants us to leave does not wait for a store that is away.
        driver.queue.patience = 0.0
        try:
            await driver.underway.stop(set())
            driver.writer.withdraw()
            await driver.recorder.committed(driver.queue, driver.pos.head)
            await let_go(store, driver.lease, self._resting)
        except HoldfastError as error:
            said = "run %s could not be released, its lease will lapse: %s"
            log.warning(said, driver.run, error, extra={"run": driver.run, "seq": driver.pos.head})
