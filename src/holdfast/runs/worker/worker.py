"""A worker: claims runs that are ready, drives each in a task, and runs the sweeps that a store needs.

A worker says once, when it begins, what of its store weakens the promise that nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final, Protocol

from holdfast.errors import (
    KeyMissingError,
    LeaseLostError,
    SchemaTooNewError,
    StoreError,
    StoreMovedError,
    VersionMismatchError,
)
from holdfast.runs.driver.release import ReleaseAfterOutage
from holdfast.runs.retention import RetentionSweep
from holdfast.runs.schedules.scheduler import Scheduler
from holdfast.runs.service import RunService
from holdfast.runs.unserved import UnservedSweep
from holdfast.runs.worker.drain import TICK, drain
from holdfast.runs.worker.heartbeat import WorkerHeartbeat
from holdfast.runs.worker.isolation import WorkerIsolation
from holdfast.runs.worker.reaper import Reaper
from holdfast.runs.worker.served_versions import ServedVersions
from holdfast.runs.worker.slots import WorkerSlots
from holdfast.runs.worker.timer_sweep import TimerSweep
from holdfast.store.protocols import Store
from holdfast.store.rows import Claim, ClaimRequest
from holdfast.telemetry import log
from holdfast.types.backoff import Backoff
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED


async def warn_if_not_durable(store: Store) -> None:
    try:
        facts = await store.durability()
    except StoreError:
        return  # a caller that uses the store gets the error anyway
    for weakness in facts.weak:
        log.warning("%s; see `holdfast doctor`", weakness)


CLAIM_BACKOFF: Final = Backoff(first=0.1, longest=5.0)
RESTART_PAUSE: Final = 5.0  # seconds after which a background task that failed starts again

BackgroundTask = Callable[[], Awaitable[None]]


class Probe(Protocol):
    """Serves the state of a worker to the outside (`holdfast.integrations.prometheus`). Opening may be asked
    for twice."""

    async def open(self, worker: RunWorker) -> None: ...

    async def close(self) -> None: ...


class RunWorker:
    """Advances runs of the flow versions that its process serves, in its lanes (None: all).

    At most `concurrency` runs have work under way. Runs that only wait count for nothing: those that wait for
    a person are kept in memory for `hot_hold` seconds, at most `hot_limit` of them, and those that wait for a
    short time as long as no other run needs their slot. The settings of the runtime are
    the worker's own: give it a service that drives no other runs.

        async with Worker(service):     # works in the background, drains at the end
        await worker.serve()            # until stop() is called
        await worker.run_until_idle()   # for tests: returns when nothing more can be done now
    """

    def __init__(
        self,
        service: RunService,
        *,
        lanes: tuple[str, ...] | None = None,
        concurrency: int = 10,
        hot_hold: float = 30.0,
        hot_limit: int = 100,
        grace: float | None = None,
        max_recoveries: int = 5,
        recovery_backoff: float | None = None,
        poll: float = 1.0,
        patience: float = 300.0,
        name: str | None = None,
        probe: Probe | None = None,
    ) -> None:
        self.runtime = service.runtime
        clock, settings, lease = self.runtime.clock, self.runtime.settings, self.runtime.settings.lease_ttl
        self.runtime.has_worker = True
        self.runtime.worker = name or self.runtime.worker
        self.store = service.store
        self.lanes = lanes
        self.grace = settings.grace if grace is None else grace
        self.poll = poll
        settings.hot_hold = hot_hold
        # No caller waits: so it waits for an unavailable store much longer than a caller would.
        self.runtime.recorder.patience = max(patience, settings.patience)
        self.release_after_outage = ReleaseAfterOutage(self.runtime)
        # A run that kills its workers leaves each of them at least one lease for other runs.
        backoff = lease if recovery_backoff is None else recovery_backoff
        self.isolation = WorkerIsolation(self)
        self.served = ServedVersions(self.runtime)
        self.reaper = Reaper(
            self.store,
            clock,
            every=lease / 3,
            max_recoveries=max_recoveries,
            backoff=backoff,
            found=self.isolation.look_soon,
        )
        self.timers = TimerSweep(self.store, clock, every=poll)
        self.unserved = UnservedSweep(self.store, clock, every=lease / 3)
        self.scheduler = Scheduler(service, every=poll)
        self.holds = self.runtime.sweeper
        self.holds.look, self.holds.every = poll, settings.hold_sweep
        self.retention_sweep = RetentionSweep(
            service, retention=settings.retention, every=settings.retention_every
        )
        self.heartbeat = WorkerHeartbeat(self)
        self.probe = probe
        self.ended = 0  # runs that ended here
        self._runs: dict[RunId, asyncio.Task[None]] = {}
        self.runtime.on_idle = self.wake
        self.slots = WorkerSlots(self._runs.keys(), self.runtime.drivers, concurrency, hot_limit)
        self._freed = asyncio.Event()
        self._stopping = False
        self._interruptible = False
        self._claiming: asyncio.Task[None] | None = None
        self._serving: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ living
    async def serve(self) -> None:
        """Until `stop`. Waits for a store that is busy or unavailable. Raises WorkerNameTakenError if another
        live worker has its name, or took it meanwhile, and StoreMovedError if the store is moved: running
        steps may finish."""
        await self.arrive()
        await warn_if_not_durable(self.store)
        sweeps = [asyncio.create_task(self._restart_on_error(each)) for each in self._background_tasks()]
        self._claiming = asyncio.create_task(self._claim_forever())
        try:
            await asyncio.wait([self._claiming])
        finally:
            # Before the runs are drained: nothing new may be claimed for a worker that stops.
            for task in (*sweeps, self._claiming):
                task.cancel()
            await asyncio.gather(*sweeps, self._claiming, return_exceptions=True)
            await self._end()
        self.heartbeat.check()
        if not self._claiming.cancelled():
            self._claiming.result()

    async def arrive(self) -> None:
        """Before any work; a second call changes nothing. Raises WorkerNameTakenError, SettingsError."""
        # Open first: it may have to wait for its name, and health probes may arrive meanwhile.
        if self.probe is not None:
            await self.probe.open(self)
        try:
            await self.heartbeat.enter()
        except BaseException:
            if self.probe is not None:
                await self.probe.close()
            raise

    async def _end(self) -> None:
        self._stopping = True
        announcement = asyncio.create_task(self.heartbeat.announce_draining())
        try:
            await drain(self._runs, self.runtime.drivers, self.grace)
        finally:
            await asyncio.gather(announcement, return_exceptions=True)
            await self.heartbeat.leave()
            if self.probe is not None:
                await self.probe.close()
            # Only now: a stop before the first turn of this loop must not be lost.
            self._stopping = False

    def _background_tasks(self) -> list[BackgroundTask]:
        """What a worker does beside its runs, each until it is cancelled."""
        tasks: list[BackgroundTask] = [
            self.reaper.serve,
            self.timers.serve,
            self.unserved.serve,
            self.holds.serve,
            self.retention_sweep.serve,
            self.scheduler.serve,
        ]
        arbiter, deliverer = self.runtime.arbiter, self.runtime.deliverer
        if arbiter is not None:
            tasks.append(partial(arbiter.serve, self.runtime.clock, self.poll))
        if self.runtime.queues is not None:
            tasks.append(self.runtime.queues.serve)
        if deliverer is not None:
            tasks.append(deliverer.serve)
        return tasks

    async def _restart_on_error(self, task: BackgroundTask) -> None:
        """An error in one of them is logged; it ends neither that task nor the worker."""
        while True:
            try:
                await task()
            except StoreMovedError:
                return  # the worker meets it too, and ends with it
            except Exception:
                log.exception("a background task of the worker failed and starts again")
            await self.runtime.clock.sleep(RESTART_PAUSE)

    async def stop(self) -> None:
        """Claim nothing more; running steps may finish within `grace`, then their runs are released."""
        self.halt()
        if self._serving is not None:
            serving, self._serving = self._serving, None
            await serving

    def halt(self) -> None:
        """The same without waiting until it is done."""
        self._stopping = True
        if self._claiming is not None and self._interruptible:
            # Never during a claim: a lease without a driver would have to expire.
            self._claiming.cancel()

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    @property
    def claimed(self) -> Collection[RunId]:
        """All runs in memory."""
        return self._runs.keys()

    def wake(self) -> None:
        """It may claim again."""
        self._freed.set()

    async def __aenter__(self) -> RunWorker:
        await self.arrive()
        self._serving = asyncio.create_task(self.serve())
        # The caller gets the error when the block ends, which may be much later.
        self._serving.add_done_callback(self._log_end)
        return self

    def _log_end(self, serving: asyncio.Task[None]) -> None:
        error = None if serving.cancelled() else serving.exception()
        if error is not None:
            log.error("the worker %s ended: %s", self.heartbeat.name, error)

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    async def run_until_idle(self) -> None:
        """Work until nothing is ready and nothing is running; runs that wait for a person are parked."""
        if self._serving is not None:
            raise RuntimeError("this worker is already serving; use run_until_idle with one that is not")
        settings = self.runtime.settings
        hot, settings.hot_hold = settings.hot_hold, 0.0
        await self.holds.sweep()
        try:
            while not self._stopping and await self._work_once():
                pass
        finally:
            settings.hot_hold = hot
            await drain(self._runs, self.runtime.drivers, self.grace)
            self._stopping = False

    async def _work_once(self) -> bool:
        await self.scheduler.sweep()
        await self.timers.sweep()
        await self.runtime.sweep_holds()
        await self.reaper.sweep()
        await self._serve_people()
        taken = await self._claim()
        # Read before the wait: if all of them end during it, others may still be queued.
        busy = bool(taken or self._runs)
        if self._runs:
            await asyncio.wait(self._runs.values(), timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
        return busy

    async def _serve_people(self) -> None:
        """What cannot be decrypted here, because a key is missing, waits for a worker that can."""
        try:
            if self.runtime.arbiter is not None:
                await self.runtime.arbiter.work()
            if self.runtime.deliverer is not None:
                await self.runtime.deliverer.deliver()
            if self.runtime.queues is not None:
                await self.runtime.queues.work()
        except KeyMissingError as error:
            log.warning("some notifications cannot be sent here: %s", error)

    # ------------------------------------------------------------------ claiming
    async def _claim_forever(self) -> None:
        pauses = CLAIM_BACKOFF.pauses()
        while not self._stopping:
            try:
                taken = await self._claim()
                pauses = CLAIM_BACKOFF.pauses()
            except StoreMovedError:
                raise  # nothing can be claimed here any more; running steps may end
            except StoreError as error:
                pause = next(pauses)
                log.warning("the store did not answer, retrying in %.1f s: %s", pause, error)
                await self._interruptibly(self.runtime.clock.sleep, pause)
                continue
            if not taken and not self._stopping:
                await self._rest()

    async def _rest(self) -> None:
        """Until there may be something to claim: a slot became free, or the store changed."""
        if self.slots.free > 0 and not self.isolation.holds_back:
            await self._interruptibly(self._change, self.poll)
        else:
            self._freed.clear()
            await self._interruptibly(self._slot, self.poll)

    async def _change(self, seconds: float) -> None:
        try:
            await self.store.wait_change(seconds)
        except StoreError as error:
            log.warning("the store did not answer: %s", error)
            await asyncio.sleep(seconds)

    async def _slot(self, seconds: float) -> None:
        """Until a run ends or begins to wait."""
        try:
            async with asyncio.timeout(seconds):
                await self._freed.wait()
        except TimeoutError:
            pass

    async def _interruptibly(self, wait: Callable[[float], Awaitable[None]], seconds: float) -> None:
        self._interruptible = True
        try:
            await wait(seconds)
        finally:
            self._interruptible = False

    async def _claim(self) -> int:
        self.slots.make_room()
        # Only what can be served here: a run that is claimed and released again costs others their turn.
        free, versions = self.slots.free, await self.served.names()
        if free <= 0 or not versions:
            return 0
        want = ClaimRequest(
            worker=self.runtime.worker,
            ttl=int(self.runtime.settings.lease_ttl * 1e6),
            limit=free,
            lanes=self.lanes,
            versions=versions,
        )
        claims = await self.isolation.claim(want)
        if claims is None:
            claims = await self.store.claim(want)
        for claim in claims:
            self._runs[claim.run.id] = asyncio.create_task(self._drive(claim))
        self.slots.make_room()
        return len(claims)

    # ------------------------------------------------------------------ driving
    async def _drive(self, claim: Claim) -> None:
        run = claim.run.id
        try:
            await self._advance(claim)
        except Exception:
            # An unexpected error: the run is not released, because an expired lease counts as a death. So it
            # is retried with growing delays, and given up in the end.
            log.exception("run %s stops here until its lease expires", run, extra={"run": run})
        finally:
            if self._runs.get(run) is asyncio.current_task():
                # Otherwise it was lost, and claimed again before this task ended.
                del self._runs[run]
            self._freed.set()

    async def _advance(self, claim: Claim) -> None:
        run = claim.run.id
        try:
            status, _ = await self.runtime.drive(claim)
            self.ended += status in ENDED
            self.release_after_outage.mark_healthy(run)
            self.runtime.unserved.forget(run)
        except LeaseLostError:
            log.info("lost the lease on run %s to another worker", run, extra={"run": run})
        except (VersionMismatchError, SchemaTooNewError, KeyMissingError) as error:
            log.warning("run %s cannot resume here: %s", run, error, extra={"run": run})
        except StoreError as error:
            log.warning("run %s stopped here: %s", run, error, extra={"run": run})
            await self.release_after_outage.release(claim)
