"""Letting go of a run that is ours: it parks where it waits, or is given back at once.

Giving runs back that had to stop because a store was away, so that somebody goes on with them (R-41).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from holdfast.engine.dataflow import CannotContinueError
from holdfast.engine.decision import Decision
from holdfast.engine.end import fail_run
from holdfast.engine.messages import RunRecovered
from holdfast.errors import HoldfastError, LeaseLostError, StoreError, StoreMovedError
from holdfast.model.position import waits_inside
from holdfast.telemetry import crashpoint, log
from holdfast.types.clock import MICROS
from holdfast.types.ids import RunId
from holdfast.types.record import Park
from holdfast.types.status import PARKED, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.driver.driver import Driver
    from holdfast.runs.driver.runtime import Runtime
    from holdfast.store.protocols import Claim, RunRow, Store
    from holdfast.types.record import Lease


FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
LONGEST_REST: Final = 60.0  # seconds between two tries of one run
_REMEMBERED: Final = 10_000


class ReleaseAfterOutage:
    """A run that stopped once may go on at once: the store was away, and answers again. One that stops again
    and again misses something else (its blobs), and rests longer each time; it never fails for that."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._stopped: dict[RunId, int] = {}

    def mark_healthy(self, run: RunId) -> None:
        self._stopped.pop(run, None)

    async def back(self, claim: Claim) -> None:
        """When the store is well again, so that its trouble does not count as a death of the run's worker.
        What is known of effects is told first: who takes the run up finds it."""
        rest = self._rest(claim.run.id)
        pause = FIRST_PAUSE
        while True:
            try:
                await self.runtime.evidence_outbox.tell(claim.run.id)
                await self._park(claim, rest)
                return
            except StoreMovedError:
                return  # it went along as it stood
            except StoreError:
                await self.runtime.clock.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _rest(self, run: RunId) -> float:
        if len(self._stopped) > _REMEMBERED:
            self._stopped.clear()
        times = self._stopped[run] = self._stopped.get(run, 0) + 1
        return 0.0 if times == 1 else min(0.5 * 2.0 ** (times - 2), LONGEST_REST)

    async def _park(self, claim: Claim, rest: float) -> None:
        async def before(row: RunRow) -> RunStatus:
            return row.status if row.status in PARKED else RunStatus.resumable

        await release_run(self.runtime.store, claim.lease, before, int(rest * MICROS))


async def release_run(
    store: Store, lease: Lease, status: Callable[[RunRow], Awaitable[RunStatus]], rest: int = 0
) -> None:
    """The run is anybody's again, after `rest` microseconds. Where mail comes at that moment it is tried
    again: nobody keeps the lease any more, and it would lapse as if its worker had died."""
    while True:
        row = await store.get_run(lease.run)
        if row is None or row.term != lease.term or row.worker is None:
            return
        ready_at = store.now() + rest
        if await store.park(lease, status=await status(row), inbox_seen=row.inbox_seq, ready_at=ready_at):
            return


class DriverPark:
    """`leaving`: that our lease ends now is our own doing."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.leaving = False

    async def park(self) -> RunStatus | None:
        """Let go of the run, durably. None where mail came meanwhile (D-29)."""
        driver = self.driver
        await asyncio.sleep(0)
        if driver.awake.is_set() or driver.handler_tasks.is_working():
            # Something was about to happen: another question of the same handler, an end.
            return None
        await driver.handler_tasks.suspend_all()
        if driver.handler_tasks.done:
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
        return await driver.retry_while_unavailable(park)

    async def _not_parked(self) -> RunStatus | None:
        driver = self.driver
        row = await driver.retry_while_unavailable(partial(driver.runtime.store.get_run, driver.run))
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
        fail_run(decision, CannotContinueError("stall", f"work remains but nothing can start ({names})", ""))
        driver.handler_tasks.done.append(RunRecovered())
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
            await driver.handler_tasks.stop(set())
            driver.writer.withdraw()
            await driver.recorder.committed(driver.queue, driver.pos.head)
            await release_run(store, driver.lease, self._resting)
        except HoldfastError as error:
            said = "run %s could not be released, its lease will lapse: %s"
            log.warning(said, driver.run, error, extra={"run": driver.run, "seq": driver.pos.head})
