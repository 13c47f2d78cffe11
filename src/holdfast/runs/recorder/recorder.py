"""Orders records in memory and commits them in batches (D-6 to D-11).

`append` never waits. `committed` is the barrier. A batch has one contiguous range for each run; at most one
batch of a run is in flight. A refused range stops the run in this process. While the store is unavailable a
commit is retried for as long as its run has patience; what a run needs before its commit (blobs, prepared
holds) concerns that run only, and no other run waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import monotonic
from typing import TypeVar

import msgspec

from holdfast.checkpoint import Blob
from holdfast.errors import HoldfastError, LeaseLostError, StoreError, StoreFullError
from holdfast.runs.recorder.queue import PATIENCE, RunQueue
from holdfast.store.protocols import Store
from holdfast.store.rows import Capability
from holdfast.telemetry import crashpoint, log
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.record import Kind, Record, Refusal, RunBatch, SettleAnswer
from holdfast.types.status import Effect

RETRY_DELAYS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
REMINDER = 60.0  # seconds between two lines about one outage of the blob store

T = TypeVar("T")


class StoreOutage(msgspec.Struct, frozen=True):
    """The store cannot write checkpoints: why, and since when on the monotonic clock."""

    error: StoreError
    since: float


class StoreRetry:
    def __init__(self) -> None:
        self.make_room: Callable[[], Awaitable[object]] | None = None
        # Why checkpoints cannot be written now; readiness reports it.
        self.trouble: StoreOutage | None = None
        # When it was last logged that a blob could not be stored: runs that wait try again every second.
        self._blobs_noted = -REMINDER

    async def retry_store_call(self, write: Callable[[], Awaitable[T]], *, settling: bool = True) -> T:
        """Settling and putting blobs are idempotent, so a failed call is repeated (D-8). If the store has
        been unavailable for long, less often."""
        cleaned = False
        delays = RETRY_DELAYS
        if settling and self.trouble is not None:
            delays = ()
            # During a known outage one attempt every two seconds, for all runs of the process together.
            await asyncio.sleep(RETRY_DELAYS[-1] if RETRY_DELAYS else 0)
        for pause in (*delays, None):
            try:
                done = await write()
            except StoreError as error:
                if not error.retryable:
                    raise
                self.note_outage(error, settling=settling)
                if pause is None:
                    raise
                # At once, without a pause: after a clean-up the same write usually succeeds.
                if isinstance(error, StoreFullError) and not cleaned:
                    cleaned = True
                    await self._make_room()
                else:
                    await asyncio.sleep(pause)
            else:
                return done
        raise AssertionError("unreachable")

    def note_outage(self, error: StoreError, *, settling: bool) -> None:
        """Logs one line for each outage of the store, of a blob store one a minute, however many runs it
        stops."""
        if settling and self.trouble is not None:
            self.trouble = StoreOutage(error, self.trouble.since)
            return
        now = monotonic()
        if settling:
            self.trouble = StoreOutage(error, now)
        elif now < self._blobs_noted + REMINDER:
            return
        else:
            self._blobs_noted = now
        log.warning("checkpoint not written, retrying: %s", error)

    def note_recovery(self) -> None:
        if self.trouble is not None:
            log.warning("checkpoints are written again after %.1f s", monotonic() - self.trouble.since)
            self.trouble = None

    async def _make_room(self) -> None:
        """A full store is cleaned of what retention would delete anyway, once for each outage (R-42)."""
        if self.make_room is None:
            return
        try:
            await self.make_room()
        except HoldfastError as error:
            log.warning("the full store could not be cleaned: %s", error)


# Seconds. Bounds what a crash can lose of records that no effect waits for (D-9).
MAX_DELAY = 0.02
_EFFECTS = frozenset({Effect.write, Effect.external, Effect.human})
_PUT_AGAIN = 3  # how often the collector may delete a blob before its record is settled

InFlight = list[tuple[RunQueue, list[Record]]]


def _is_effect_result(record: Record) -> bool:
    """The result of an effect is written soon, whatever the mode (D-10)."""
    return record.kind == Kind.step and record.effect in _EFFECTS


class Recorder(StoreRetry):
    def __init__(
        self, store: Store, put_blobs: Callable[[RunId, list[Blob]], Awaitable[None]] | None = None
    ) -> None:
        super().__init__()
        self.store = store
        self.inline = Capability.inline in store.capabilities
        self.queues: set[RunQueue] = set()
        # Running runs, or runs about to start: with more than one, commits are worth sharing.
        self.expected = 0
        self._waiting: list[RunQueue] = []
        self._commit_task: asyncio.Task[None] | None = None
        # When the oldest waiting record has waited long enough, on the monotonic clock; None: nothing waits.
        self._due_at: float | None = None
        # Checks that. It is left running over commits, because making and cancelling one costs as much as
        # encoding a record.
        self._timer: asyncio.TimerHandle | None = None
        self._put_blobs = put_blobs
        self.published: Callable[[RunQueue, list[Record]], None] | None = None
        # How long runs wait for an unavailable store, in seconds.
        self.patience = PATIENCE
        # Runs that wait because a large value cannot be stored, and why.
        self.unstored: dict[RunId, str] = {}

    def open(self, lease: Lease, head: int, on_lost: Callable[[], None]) -> RunQueue:
        queue = RunQueue(lease, head, on_lost)
        queue.patience = self.patience
        self.queues.add(queue)
        return queue

    def close(self, queue: RunQueue) -> None:
        self.queues.discard(queue)
        self.unstored.pop(queue.lease.run, None)
        if queue.preparing is not None:
            # Blobs that it has put already are garbage, which the collector deletes.
            queue.preparing.cancel()
        if queue in self._waiting:
            self._waiting.remove(queue)

    def append(self, queue: RunQueue, record: Record, blobs: Sequence[Blob] = ()) -> None:
        """Order a record. It is written with the next commit, its blobs before it."""
        if queue.poison is not None:
            raise queue.poison
        if not queue.pending:
            self._waiting.append(queue)
        # One time for all runs: what arrives until then shares one commit.
        if self._due_at is None and (not queue.lazy or _is_effect_result(record)):
            self._due_at = monotonic() + MAX_DELAY
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(MAX_DELAY, self._check_due)
        queue.add(record)
        if blobs:
            queue.fresh += blobs

    async def committed(self, queue: RunQueue, seq: int) -> None:
        """Until everything up to `seq` is durable. Raises LeaseLostError if the run is no longer ours."""
        while queue.committed < seq:
            if queue.poison is not None:
                raise queue.poison
            # Not while a commit is in flight: a run has at most one batch on its way (D-6).
            if self._commit_task is None and self.inline and self.expected <= 1 and self._commit_now():
                continue
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            queue.waiters.append((seq, waiter))
            self._start_commit()
            await waiter
        if queue.poison is not None:
            raise queue.poison

    async def room(self, queue: RunQueue) -> None:
        """Until less is unwritten than the limit. Unlike a barrier it lets a run continue without
        checkpoints. Raises as `committed` does."""
        while queue.full and queue.poison is None:
            if self._commit_task is None and self.inline and self.expected <= 1 and self._commit_now():
                continue
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            queue.room_waiters.append(waiter)
            self._start_commit()
            await waiter
        if queue.poison is not None:
            raise queue.poison

    def catch_up(self, queue: RunQueue) -> None:
        """Records that waited long enough are written in place: a thread would make little progress beside
        busy handlers."""
        if (
            queue.pending
            and not queue.lazy
            and self._commit_task is None
            and self.inline
            and self.expected <= 1
        ):
            self._commit_now()

    def hurry(self) -> None:
        """Commit without waiting for the timer: something should be shown or stored now."""
        if any(not queue.lazy for queue in self._waiting):
            self._start_commit()

    def _check_due(self) -> None:
        """Commit, if the oldest waiting record has waited long enough."""
        self._timer = None
        if self._due_at is None:
            return
        left = self._due_at - monotonic()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._check_due)
            return
        self._due_at = None
        if self._waiting:
            self._start_commit()

    def _commit_now(self) -> bool:
        """A single run commits in place: a switch to another thread would cost more than the commit."""
        # Blobs and holds have to be prepared first, and that waits for I/O.
        for queue in self._waiting:
            if queue.fresh or queue.unrouted:
                return False
        flying = self._load()
        if not flying:
            return False
        batches = [RunBatch(queue.lease, records, queue.park) for queue, records in flying]
        try:
            answers = self.store.settle_now(batches)
        # The slow path repeats the call, which is safe (D-8), and knows how long to wait for the store.
        except StoreError:
            answers = None
        if answers is None:
            self._put_back_all(flying)
            return False
        self._commit_done(flying, answers)
        return True

    def _load(self) -> InFlight:
        self._due_at = None
        crashpoint("lease_lost_before_commit")
        flying: InFlight = []
        later: list[RunQueue] = []
        for queue in self._waiting:
            # Records must not overtake the blobs that they name.
            if queue.preparing is not None:
                later.append(queue)
            elif queue.pending and queue.poison is None:
                if queue.fresh or queue.unrouted:
                    later.append(queue)
                    self._start_preparing(queue)
                else:
                    flying.append((queue, queue.take()))
        self._waiting = later
        return flying

    def _put_back_all(self, flying: InFlight) -> None:
        for queue, records in flying:
            queue.put_back(records)
            if queue not in self._waiting:
                self._waiting.append(queue)

    def _start_commit(self) -> None:
        if self._commit_task is None:
            self._commit_task = asyncio.get_running_loop().create_task(self._commit_loop())

    async def _commit_loop(self) -> None:
        try:
            while True:
                flying = self._load()
                if not flying:
                    return
                batches = [RunBatch(queue.lease, records, queue.park) for queue, records in flying]
                try:
                    answers = await self.retry_store_call(partial(self.store.settle, batches))
                    self._commit_done(flying, answers)
                except BaseException as error:
                    # Whatever the error is: callers that wait for this commit must get it.
                    self._commit_failed(flying, error)
                    if not isinstance(error, StoreError):
                        raise
        finally:
            self._commit_task = None

    def _start_preparing(self, queue: RunQueue) -> None:
        """What a run needs first is done in a separate task: a blob store that is unavailable or slow must
        not delay runs without blobs."""
        queue.since = queue.since or monotonic()
        queue.preparing = asyncio.get_running_loop().create_task(self._prepare(queue))

    async def _prepare(self, queue: RunQueue) -> None:
        try:
            await self.retry_store_call(partial(self._put_first, queue), settling=False)
            await self.retry_store_call(partial(self._route, queue), settling=False)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            queue.preparing = None
            self._commit_failed([(queue, queue.take())], error)
            if not isinstance(error, StoreError):
                raise
        else:
            queue.preparing = None
            self.unstored.pop(queue.lease.run, None)
        if self._waiting:
            self._start_commit()

    async def _put_first(self, queue: RunQueue) -> None:
        """Blobs go first: an orphan blob is garbage, a missing blob is data loss."""
        while queue.fresh and self._put_blobs is not None:
            blobs = list(queue.fresh)
            try:
                await self._put_blobs(queue.lease.run, blobs)
            except StoreError as error:
                self.unstored[queue.lease.run] = str(error)
                raise
            queue.blobs += blobs
            # Not cleared: records that were appended during the put have added their blobs behind these.
            del queue.fresh[: len(blobs)]

    async def _route(self, queue: RunQueue) -> None:
        while queue.unrouted and queue.route is not None:
            await queue.route(queue.unrouted[0])
            # After the call: if it fails, the same hold is prepared again.
            queue.unrouted.pop(0)

    def _puts_again(self, queue: RunQueue, answer: SettleAnswer) -> bool:
        """The collector was faster: the blobs are put again before that run settles again."""
        # Bounded: if it happens again and again, the run stops with the error instead of repeating for ever.
        if answer.refusal is not Refusal.put_blobs_again or not queue.blobs or queue.put_again >= _PUT_AGAIN:
            return False
        queue.put_again += 1
        queue.fresh, queue.blobs = queue.blobs + queue.fresh, []
        return True

    def _commit_done(self, flying: InFlight, answers: list[SettleAnswer]) -> None:
        if self.trouble is not None:
            self.note_recovery()
        for (queue, records), answer in zip(flying, answers, strict=True):
            if answer.refusal is None:
                queue.last = records[-1]
                queue.committed = queue.last.seq
                # False although it was requested: a message arrived, and the records were written all the
                # same.
                queue.parked = answer.parked
                queue.landed()
                if queue.outage is not None:
                    queue.outage = None
                    run = queue.lease.run
                    log.warning("run %s writes checkpoints again", run, extra={"run": run})
                if self.published is not None:
                    self.published(queue, records)
            elif self._puts_again(queue, answer):
                self._put_back_all([(queue, records)])
                continue
            else:
                self._poison(
                    queue,
                    LeaseLostError(
                        f"lost the lease on run {queue.lease.run} to another worker ({answer.refusal.name})"
                    ),
                )
            self._wake(queue)
        crashpoint("after_settle")

    def _commit_failed(self, flying: InFlight, error: BaseException) -> None:
        """The store could not write. Nothing after this point may become visible: the runs wait, or stop
        here."""
        for queue, records in flying:
            if self._may_go_on(queue, error):
                self._hold_back(queue, records, error)
            # Only while its driver lives: no task waits for the commit of a queue that was closed.
            elif queue in self.queues and queue.may_wait(error):
                self._put_back_all([(queue, records)])
            else:
                if isinstance(error, StoreError) and queue in self.queues:
                    run, message = queue.lease.run, "run %s stops: its checkpoint cannot be written: %s"
                    log.error(message, run, error, extra={"run": run})
                self._poison(queue, error)
                self._wake(queue)

    def _may_go_on(self, queue: RunQueue, error: BaseException) -> bool:
        """Only if the flow allows it and nothing waits for the commit: no effect, no pause (R-43)."""
        away = isinstance(error, StoreError) and error.retryable
        return (
            away
            and queue.on_outage is not None
            and queue in self.queues
            # A waiter is an effect or a park that must not happen past an unwritten checkpoint. An end is
            # none.
            and (queue.ending or not queue.waiters)
            and (queue.outage is None or not queue.full)
        )

    def _hold_back(self, queue: RunQueue, records: list[Record], error: BaseException) -> None:
        """The records stay in order; the next commit includes them."""
        self._put_back_all([(queue, records)])
        waiters, queue.waiters = queue.waiters, []
        for _, waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
        if queue.outage is None and queue.on_outage is not None:
            queue.outage = error
            run, message = queue.lease.run, "run %s continues without checkpoints, as its flow allows: %s"
            log.error(message, run, error, extra={"run": run})
            queue.on_outage(error)
        queue.wake_writers()

    def _poison(self, queue: RunQueue, error: BaseException) -> None:
        queue.poison = error
        queue.pending, queue.size, queue.over = [], 0, False
        # For every error, not only a lost lease: nothing of this run may become visible any more.
        queue.on_lost()

    def _wake(self, queue: RunQueue) -> None:
        if queue.room_waiters:
            queue.wake_writers()
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
