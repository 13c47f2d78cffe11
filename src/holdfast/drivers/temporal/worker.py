"""A worker of a cluster: it advances runs of the flows that it has, starts new ones, and delivers what was
decided about them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker, WorkerDeploymentConfig

from holdfast.checkpoint import compress
from holdfast.drivers.temporal.activities import Activities
from holdfast.drivers.temporal.reconcile import end_closed_runs
from holdfast.drivers.temporal.task_queues import queue_of, shared_queue
from holdfast.drivers.temporal.workflow import RunWorkflow
from holdfast.drivers.temporal.workflow_runner import RUNNER
from holdfast.errors import EngineError, HoldfastError
from holdfast.model.fingerprint import CODED, dialect_of
from holdfast.runs.engine_moves import StartOrder
from holdfast.runs.engine_report import DeploymentOptions
from holdfast.runs.store_identity import store_identity
from holdfast.store.rows import RunFilter, RunRow
from holdfast.telemetry import log
from holdfast.types.ids import RunId
from holdfast.types.outbox import ENGINE_START, OutboxState
from holdfast.types.status import ENDED
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from holdfast.drivers.temporal.client import TemporalEngine

PAUSE: Final = 0.25
"""Seconds between two looks at the store, if nothing wakes it."""
GAP: Final = 0.02
"""Seconds between two looks, at least."""
AGAIN: Final = 10.0
"""Seconds after which a message that was not taken in is delivered again."""
RECONCILE: Final = 30.0
LEASE: Final = 30_000_000
QUEUED: Final = 1_000_000
"""Microseconds between two looks whether a limit admits a run."""
BATCH: Final = 100
UNSERVED: Final = 1.0
"""Seconds after which a worker looks again whether it has what a run needs."""
DEFAULT_LANE: Final = "default"
PAGE: Final = 1000
_AWAY: Final = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED)
_STICKY: Final = timedelta(seconds=2)


def _is_away(error: Exception) -> bool:
    return isinstance(error, RPCError) and error.status in _AWAY


class EngineWorker:
    """`lanes`: of the runs that it serves; None: all. `cached`: workflows that stay in memory. `measured`:
    the SDK's own metrics are among the figures of the engine."""

    def __init__(
        self,
        engine: TemporalEngine,
        *,
        lanes: Sequence[str] | None = None,
        cached: int = 1000,
        grace: float = 10.0,
        deployment: DeploymentOptions | None = None,
        measured: bool = False,
    ) -> None:
        self.engine = engine
        self.runtime = engine.runtime
        self.store = engine.store
        self.lanes = lanes
        self._cached = cached
        self._grace = grace
        self._deployment = deployment
        self._measured = measured
        self._stopping = asyncio.Event()
        self._activities = Activities(self.runtime, engine.cluster.address.heartbeat)
        # Of each task queue, what polls it.
        self._pollers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        # Until when it is known whether runs of a lane and version are served here.
        self._known: dict[tuple[str, str], float] = {}
        # When each message was delivered, by its number.
        self._delivered: dict[int, float] = {}
        # Of runs without a message that is not taken in: how many they had had then.
        self._heard: dict[RunId, int] = {}

    async def serve(self) -> None:
        """Until `stop`. Raises EngineError if the cluster cannot be used."""
        if self._measured:
            self.engine.figures.own = self.engine.cluster.measure().collect
        await self.engine.check()
        # Before workflow code asks for it: the sandbox cannot import it.
        compress.library()
        try:
            for queue in await self.queues():
                await self._poll(queue)
            await self._dispatch()
        finally:
            # All at once: a queue whose turn comes later would take new work meanwhile.
            await asyncio.gather(*(worker.shutdown() for worker, _ in self._pollers.values()))
            await asyncio.gather(*(task for _, task in self._pollers.values()), return_exceptions=True)

    async def _poll(self, queue: str) -> None:
        """From now on, until this worker stops."""
        if queue in self._pollers:
            return
        address = self.engine.cluster.address
        worker = Worker(
            await self.engine.client(),
            task_queue=queue,
            workflows=[RunWorkflow],
            activities=self._activities.all(),
            workflow_runner=RUNNER,
            max_cached_workflows=self._cached,
            max_concurrent_activities=address.activities,
            max_concurrent_workflow_task_polls=max(address.pollers, 2),
            max_concurrent_activity_task_polls=address.pollers,
            sticky_queue_schedule_to_start_timeout=_STICKY,
            graceful_shutdown_timeout=timedelta(seconds=self._grace),
            # Heartbeats are as frequent as we send them.
            max_heartbeat_throttle_interval=timedelta(seconds=address.heartbeat / 3),
            deployment_config=self._versioning(),
        )
        self._pollers[queue] = worker, asyncio.ensure_future(worker.run())
        log.info("serving %s", queue, extra={"engine": self.engine.name})

    def _require_polling(self) -> None:
        """Raises EngineError if the cluster gives no more work: a namespace is gone, or a key is refused."""
        for queue, (_, task) in self._pollers.items():
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise EngineError(
                    f"{self.engine.name} refused task queue {queue}: {clean_text(error)[:300]}",
                    hint="Check its namespace and this worker's rights there, then start the worker again.",
                ) from error

    async def queues(self) -> list[str]:
        """Those that it polls from its start on; `_attend` adds those of runs that it finds."""
        store = await store_identity(self.store)
        found = {shared_queue(store, lane): None for lane in self.lanes or [DEFAULT_LANE]}
        for program in self.runtime.programs.values():
            if dialect_of(program.version) == CODED:
                for lane in self.lanes or [program.graph.spec.lane]:
                    found[queue_of(store, lane, program.graph.name, program.version)] = None
        return list(found)

    async def _attend(self, row: RunRow) -> None:
        """Poll the task queue of this run, if this worker serves its lane and has what the run needs. What it
        lacks it may get later."""
        kind, now = (row.lane, row.version), asyncio.get_running_loop().time()
        if self._known.get(kind, 0.0) > now or (self.lanes is not None and row.lane not in self.lanes):
            return
        self._known[kind] = now + UNSERVED
        if await self.engine.queues.is_served(row):
            await self._poll(await self.engine.queues.of(row))
            self._known[kind] = math.inf

    def _versioning(self) -> WorkerDeploymentConfig | None:
        """A run may continue on a newer build: histories of earlier ones replay there."""
        if self._deployment is None:
            return None
        return WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(self._deployment.name, self._deployment.build_id),
            use_worker_versioning=True,
            default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
        )

    def stop(self) -> None:
        self._stopping.set()

    # ------------------------------------------------------------------ the store's side
    async def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        reconciled = loop.time()
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            while not self._stopping.is_set():
                try:
                    await self.deliver()
                    if loop.time() > reconciled + RECONCILE:
                        reconciled = loop.time()
                        await end_closed_runs(self.engine)
                except (HoldfastError, RPCError) as error:
                    log.warning("the engine's messages are delivered later: %s", error)
                waiting = asyncio.ensure_future(self.store.wait_change(PAUSE))
                polling = [task for _, task in self._pollers.values()]
                await asyncio.wait({waiting, stopping, *polling}, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                self._require_polling()
                # Steps of runs are changes too: one look for many of them.
                await asyncio.wait({stopping}, timeout=GAP)
        finally:
            stopping.cancel()

    async def deliver(self) -> None:
        """Start what was created, and tell live runs what was decided about them."""
        if self.engine.figures.own is not None:
            self.engine.figures.own()
        await self._start_new()
        undelivered = 0
        async for row in self._live():
            undelivered += await self._serve_run(row)
        self.engine.figures.undelivered = undelivered

    async def _start_new(self) -> None:
        for message in await self.store.claim_outbox(limit=BATCH, lease=LEASE, topics=(ENGINE_START,)):
            why, pause = "", LEASE // 10
            try:
                order = msgspec.json.decode(message.payload, type=StartOrder)
                if order.engine != self.engine.name:
                    # Its own workers start it: they are not kept waiting for the lease.
                    why, pause = f"it is started by workers of {order.engine}", QUEUED
                elif not await self._started(RunId(message.run or ""), order):
                    why, pause = "a limit of its flow is reached", QUEUED
            except (HoldfastError, RPCError) as error:
                why = str(error)
            state = OutboxState.waiting if why else OutboxState.done
            due = self.store.now() + pause if why else 0
            await self.store.finish_outbox(
                message.id, attempt=message.attempts, state=state, error=why or None, due_at=due
            )

    async def _started(self, run: RunId, order: StartOrder) -> bool:
        """False: a limit does not admit it yet. A run that has ended, or that a built-in worker has taken
        over, needs no start."""
        row = await self.store.get_run(run)
        if row is not None and row.worker is None and row.term == 0 and row.status not in ENDED:
            row = await self.engine.admit(row)
            if row is None:
                return False
        if row is not None:
            await self.engine.start(row, serial=await self._is_serial(row, order))
        if order.replaces:
            # It reads the store, sees that it is superseded, and ends.
            await self.engine.tell(RunId(order.replaces), 0, cancels=False)
        return True

    async def _is_serial(self, row: RunRow, order: StartOrder) -> bool:
        """Raises EngineError where only its program knows, and this worker cannot have it."""
        if order.serial is not None:
            return order.serial
        if not await self.engine.queues.is_served(row):
            raise EngineError(f"run {row.id} cannot start here: this worker lacks what {row.flow!r} needs.")
        return (await self.runtime.find_program(row.version, row.flow)).budget is not None

    async def _serve_run(self, row: RunRow) -> int:
        """How many messages it has not taken in. Raises what keeps all runs waiting: the store or the cluster
        is away."""
        try:
            await self._attend(row)
            # Most have no message at all, or none since they were asked last.
            return await self._tell(row) if row.inbox_seq != self._heard.get(row.id, 0) else 0
        except (HoldfastError, RPCError) as error:
            if isinstance(error, EngineError) or getattr(error, "retryable", False) or _is_away(error):
                raise
            log.warning("run %s: its messages are delivered later: %s", row.id, error, extra={"run": row.id})
            return 1

    async def _live(self) -> AsyncIterator[RunRow]:
        where, after = RunFilter(worker=self.engine.name, leased=True), None
        while True:
            rows = await self.store.list_runs(where, after=after, limit=PAGE)
            for row in rows:
                yield row
            if len(rows) < PAGE:
                return
            after = (rows[-1].created_at, rows[-1].key)

    async def _tell(self, row: RunRow) -> int:
        """How many messages its workflow has not taken in."""
        now = asyncio.get_running_loop().time()
        count, waiting = await self.store.pending(row.id)
        if not waiting:
            self._heard[row.id] = count
            if len(self._heard) > 100 * PAGE:
                self._heard = {row.id: count}
            return 0
        due = [mail for mail in waiting if now - self._delivered.get(mail.id, -AGAIN) >= AGAIN]
        if not due:
            return len(waiting)
        cancels = any(mail.kind == "cancel" for mail in due)
        taken = True
        try:
            taken = await self.engine.tell(row.id, due[-1].id, cancels=cancels)
        finally:
            # Not again at once, also where the cluster refuses it.
            self._delivered |= dict.fromkeys((mail.id for mail in due) if taken else (), now)
        if len(self._delivered) > 10 * PAGE:
            self._delivered = {number: at for number, at in self._delivered.items() if now - at < AGAIN}
        return len(waiting)
