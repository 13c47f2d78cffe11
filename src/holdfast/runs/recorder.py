"""The recorder orders records in memory and commits them in batches (D-6 to D-11).

`append` never waits. `committed` is the barrier. A batch carries one contiguous range per run; at most
one batch per run is in flight. A refused range poisons the run in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from holdfast.checkpoint import Blob
from holdfast.errors import HoldfastError, LeaseLostError, StoreError, StoreFullError
from holdfast.store.base import Capability, Store
from holdfast.telemetry import crashpoint, log
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Lease, Park, Record, Refusal, RunBatch, SettleAnswer, Side
from holdfast.types.status import Effect

MAX_RECORDS = 64
MAX_BYTES = 1 << 20
MAX_DELAY = 0.02
_EFFECTS = frozenset({Effect.write, Effect.external, Effect.human})
RETRY_DELAYS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

T = TypeVar("T")


class RunQueue:
    """One run's records on their way to the store."""

    __slots__ = (
        "blobs", "committed", "ending", "fresh", "lazy", "lease", "on_lost", "on_outage", "outage", "over",
        "park",
        "parked",
        "pending", "poison", "route", "size", "unrouted", "waiters",
    )  # fmt: skip

    def __init__(self, lease: Lease, head: int, on_lost: Callable[[], None]) -> None:
        self.lease = lease
        self.pending: list[Record] = []
        self.size = 0
        self.over = False
        self.committed = head
        self.waiters: list[tuple[int, asyncio.Future[None]]] = []
        self.poison: BaseException | None = None
        self.on_lost = on_lost
        # Blobs that pending records name: first those not put yet, then all until their records are durable.
        self.fresh: list[Blob] = []
        self.blobs: list[Blob] = []
        # What opens holds that have to be looked up first: whom they go to, until when.
        self.unrouted: list[Side] = []
        self.route: Callable[[Side], Awaitable[None]] | None = None
        # The `exit` mode: no commits in the background, only where something waits for one (D-10).
        self.lazy = False
        # Asked for by a driver that has nothing left to do: the run is let go with its last records.
        self.park: Park | None = None
        self.parked = False
        # Set where the flow allows to go on while the store is away: told once for each outage.
        self.on_outage: Callable[[BaseException], None] | None = None
        self.outage: BaseException | None = None
        self.ending = False

    @property
    def full(self) -> bool:
        """More is unwritten than may be (D-9)."""
        return self.over and not self.lazy and self.outage is None


def _tells_of_effect(record: Record) -> bool:
    """What became of an effect is written soon, whatever the mode (D-10)."""
    return record.kind == Kind.step and record.effect in _EFFECTS


class Recorder:
    def __init__(
        self, store: Store, put_blobs: Callable[[RunId, list[Blob]], Awaitable[None]] | None = None
    ) -> None:
        self.store = store
        self.inline = Capability.inline in store.capabilities
        self.queues: set[RunQueue] = set()
        # Runs under way or about to be: with more than one, commits are worth sharing.
        self.expected = 0
        self._waiting: list[RunQueue] = []
        self._flight: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._put_blobs = put_blobs
        self.published: Callable[[RunQueue, list[Record]], None] | None = None
        self.make_room: Callable[[], Awaitable[object]] | None = None

    def open(self, lease: Lease, head: int, on_lost: Callable[[], None]) -> RunQueue:
        queue = RunQueue(lease, head, on_lost)
        self.queues.add(queue)
        return queue

    def close(self, queue: RunQueue) -> None:
        self.queues.discard(queue)
        if queue in self._waiting:
            self._waiting.remove(queue)

    def append(self, queue: RunQueue, record: Record, blobs: Sequence[Blob] = ()) -> None:
        """Order a record. It is written with the next commit, its blobs before."""
        if queue.poison is not None:
            raise queue.poison
        if not queue.pending:
            self._waiting.append(queue)
        if self._timer is None and (not queue.lazy or _tells_of_effect(record)):
            self._timer = asyncio.get_running_loop().call_later(MAX_DELAY, self._due)
        queue.pending.append(record)
        queue.size += len(record.payload)
        queue.over = len(queue.pending) >= MAX_RECORDS or queue.size >= MAX_BYTES
        if blobs:
            queue.fresh += blobs

    async def committed(self, queue: RunQueue, seq: int) -> None:
        """Until everything up to `seq` is durable. Raises LeaseLostError where the run is no longer ours."""
        while queue.committed < seq:
            if queue.poison is not None:
                raise queue.poison
            if self._flight is None and self.inline and self.expected <= 1 and self._commit_now():
                continue
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            queue.waiters.append((seq, waiter))
            self._take_off()
            await waiter
        if queue.poison is not None:
            raise queue.poison

    def catch_up(self, queue: RunQueue) -> None:
        """What waited long enough is written in place: a thread would not get far beside busy handlers."""
        if queue.pending and not queue.lazy and self._flight is None and self.inline and self.expected <= 1:
            self._commit_now()

    def hurry(self) -> None:
        """Do not wait for the timer: something is worth showing or keeping now."""
        if any(not queue.lazy for queue in self._waiting):
            self._take_off()

    def _due(self) -> None:
        """The oldest waiting record has waited long enough."""
        self._timer = None
        if self._waiting:
            self._take_off()

    def _commit_now(self) -> bool:
        """The only run commits in place: a hop to another thread would cost more than the commit."""
        if any(queue.fresh or queue.unrouted for queue in self._waiting):
            return False
        flying = self._load()
        if not flying:
            return False
        batches = [RunBatch(queue.lease, records, queue.park) for queue, records in flying]
        try:
            answers = self.store.settle_now(batches)
        except StoreError:
            answers = None
        if answers is None:
            self._unload(flying)
            return False
        self._landed(flying, answers)
        return True

    def _load(self) -> list[tuple[RunQueue, list[Record]]]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        crashpoint("lease_lost_before_commit")
        flying: list[tuple[RunQueue, list[Record]]] = []
        for queue in self._waiting:
            if queue.pending and queue.poison is None:
                flying.append((queue, queue.pending))
                queue.pending, queue.size, queue.over = [], 0, False
        self._waiting = []
        return flying

    def _unload(self, flying: list[tuple[RunQueue, list[Record]]]) -> None:
        for queue, records in flying:
            queue.pending = records + queue.pending
            queue.over = len(queue.pending) >= MAX_RECORDS
            if queue not in self._waiting:
                self._waiting.append(queue)

    def _take_off(self) -> None:
        if self._flight is None:
            self._flight = asyncio.get_running_loop().create_task(self._fly())

    async def _fly(self) -> None:
        try:
            while True:
                flying = self._load()
                if not flying:
                    return
                batches = [RunBatch(queue.lease, records, queue.park) for queue, records in flying]
                try:
                    await self._insist(partial(self._put_first, flying))
                    await self._insist(partial(self._route, flying))
                    answers = await self._insist(partial(self.store.settle, batches))
                    await self._insist(partial(self._put_again, flying, answers))
                    self._landed(flying, answers)
                except BaseException as error:
                    # Whatever it is: whoever waits for this commit must hear of it.
                    self._crashed(flying, error)
                    if not isinstance(error, StoreError):
                        raise
        finally:
            self._flight = None

    async def _put_first(self, flying: list[tuple[RunQueue, list[Record]]]) -> None:
        """Blobs go first: an orphan blob is garbage, a missing blob is data loss."""
        for queue, _ in flying:
            if queue.fresh and self._put_blobs is not None:
                await self._put_blobs(queue.lease.run, queue.fresh)
                queue.blobs += queue.fresh
                queue.fresh = []

    async def _route(self, flying: list[tuple[RunQueue, list[Record]]]) -> None:
        for queue, _ in flying:
            while queue.unrouted and queue.route is not None:
                await queue.route(queue.unrouted[0])
                queue.unrouted.pop(0)

    async def _insist(self, write: Callable[[], Awaitable[T]]) -> T:
        """Settling and putting blobs are idempotent, so a failed call is simply made again (D-8)."""
        cleaned = False
        for pause in RETRY_DELAYS:
            try:
                return await write()
            except StoreError as error:
                if not error.retryable:
                    raise
                log.warning("checkpoint not written, trying again: %s", error)
                if isinstance(error, StoreFullError) and not cleaned:
                    cleaned = True
                    await self._make_room()
                else:
                    await asyncio.sleep(pause)
        return await write()

    async def _make_room(self) -> None:
        """A full store is cleaned of what retention would take anyway, once (R-42)."""
        if self.make_room is None:
            return
        try:
            await self.make_room()
        except HoldfastError as error:
            log.warning("the full store could not be cleaned: %s", error)

    async def _put_again(
        self, flying: list[tuple[RunQueue, list[Record]]], answers: list[SettleAnswer]
    ) -> None:
        """The collector was faster than us: put the blobs once more and settle that run again."""
        for i, (queue, records) in enumerate(flying):
            if answers[i].refusal is Refusal.put_blobs_again and queue.blobs and self._put_blobs is not None:
                await self._put_blobs(queue.lease.run, queue.blobs)
                answers[i] = (await self.store.settle([RunBatch(queue.lease, records)]))[0]

    def _landed(self, flying: list[tuple[RunQueue, list[Record]]], answers: list[SettleAnswer]) -> None:
        for (queue, records), answer in zip(flying, answers, strict=True):
            if answer.refusal is None:
                queue.committed = records[-1].seq
                queue.parked = answer.parked
                queue.blobs.clear()
                if queue.outage is not None:
                    queue.outage = None
                    run = queue.lease.run
                    log.warning("run %s is checkpointed again", run, extra={"run": run})
                if self.published is not None:
                    self.published(queue, records)
            else:
                self._poison(
                    queue,
                    LeaseLostError(f"run {queue.lease.run} is not ours any more ({answer.refusal.name})"),
                )
            self._wake(queue)
        crashpoint("after_settle")

    def _crashed(self, flying: list[tuple[RunQueue, list[Record]]], error: BaseException) -> None:
        """The store could not write. Nothing past this point may be seen: the runs stop here."""
        for queue, records in flying:
            if self._may_go_on(queue, error):
                self._hold_back(queue, records, error)
            else:
                self._poison(queue, error)
                self._wake(queue)

    def _may_go_on(self, queue: RunQueue, error: BaseException) -> bool:
        """Only where the flow allows it and nothing waits for the commit: no effect, no pause (R-43)."""
        away = isinstance(error, StoreError) and error.retryable
        return (
            away
            and queue.on_outage is not None
            and queue in self.queues
            and (queue.ending or not queue.waiters)
        )

    def _hold_back(self, queue: RunQueue, records: list[Record], error: BaseException) -> None:
        """The records stay in order; the next commit takes them along."""
        self._unload([(queue, records)])
        waiters, queue.waiters = queue.waiters, []
        for _, waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
        if queue.outage is None and queue.on_outage is not None:
            queue.outage = error
            run, said = queue.lease.run, "run %s goes on without checkpoints, as its flow allows: %s"
            log.error(said, run, error, extra={"run": run})
            queue.on_outage(error)

    def _poison(self, queue: RunQueue, error: BaseException) -> None:
        queue.poison = error
        queue.pending, queue.size, queue.over = [], 0, False
        queue.on_lost()

    def _wake(self, queue: RunQueue) -> None:
        if not queue.waiters:
            return
        waiters, queue.waiters = queue.waiters, []
        for seq, waiter in waiters:
            if waiter.done():
                continue
            if queue.poison is not None:
                waiter.set_exception(queue.poison)
            elif queue.committed >= seq:
                waiter.set_result(None)
            else:
                queue.waiters.append((seq, waiter))
