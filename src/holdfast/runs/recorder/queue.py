"""The unwritten records of one run, and how long it waits for a store that is unavailable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.checkpoint import Blob
from holdfast.errors import StoreError
from holdfast.types.backoff import Backoff
from holdfast.types.lease import Lease
from holdfast.types.record import Park, Record, Side

PATIENCE = 4.0  # seconds
# What a run may have unwritten at a time, in records and bytes (D-9): its writers wait when it is more.
MAX_RECORDS = 64
MAX_BYTES = 1 << 20
HELD_BYTES = 64 << 20  # of a run that continues without checkpoints
STORE_BACKOFF = Backoff(first=0.1, longest=2.0)

T = TypeVar("T")


class RunQueue:
    """The unwritten records of one run."""

    __slots__ = (
        "blobs", "committed", "ending", "fresh", "in_flight", "in_flight_bytes", "last", "lazy", "lease",
        "on_lost", "on_outage", "outage", "over", "park", "parked", "patience", "pending", "poison",
        "preparing", "put_again", "room_waiters", "route", "since", "size", "unrouted", "waiters",
    )  # fmt: skip

    def __init__(self, lease: Lease, head: int, on_lost: Callable[[], None]) -> None:
        self.lease = lease
        self.pending: list[Record] = []
        self.size = 0  # bytes of them
        # Records and bytes that are being written now: they are unwritten, too.
        self.in_flight = self.in_flight_bytes = 0
        self.over = False
        self.committed = head
        # The newest record that was acknowledged to us.
        self.last: Record | None = None
        self.waiters: list[tuple[int, asyncio.Future[None]]] = []
        # Writers that wait until less is unwritten.
        self.room_waiters: list[asyncio.Future[None]] = []
        self.poison: BaseException | None = None
        self.on_lost = on_lost
        # Blobs that pending records name: first those not put yet, then all until their records are durable.
        self.fresh: list[Blob] = []
        self.blobs: list[Blob] = []
        # Records that open holds which need preparation first: assignee, deadline.
        self.unrouted: list[Side] = []
        self.route: Callable[[Side], Awaitable[None]] | None = None
        # The `exit` mode: no commits in the background, only when a caller waits for one (D-10).
        self.lazy = False
        # Requested by a driver that has nothing left to do: the run is parked with its last records.
        self.park: Park | None = None
        self.parked = False
        # Set if the flow allows to continue while the store is unavailable: called once for each outage
        #
        self.on_outage: Callable[[BaseException], None] | None = None
        self.outage: BaseException | None = None
        self.ending = False
        # How long to wait for an unavailable store, in seconds; and since when it is unavailable.
        self.patience = PATIENCE
        self.since: float | None = None
        # Its blobs are being put, its holds prepared: other runs' records do not wait for that.
        self.preparing: asyncio.Task[None] | None = None
        # How often its blobs had to be put again.
        self.put_again = 0

    def add(self, record: Record) -> None:
        self.pending.append(record)
        self.size += len(record.payload)
        if self.size >= MAX_BYTES or len(self.pending) >= MAX_RECORDS or self.in_flight:
            self.weigh()

    def take(self) -> list[Record]:
        """Everything that is to be written now."""
        # A commit that is under way counts as unwritten only when it is a retry: otherwise every normal
        # commit would stop the writers of its run.
        records = self.pending
        if self.since is None:
            self.since = time.monotonic()
            self.in_flight = self.in_flight_bytes = 0
            self.over = False
        else:
            self.in_flight, self.in_flight_bytes = len(records), self.size
            self.over = len(records) >= MAX_RECORDS or self.size >= MAX_BYTES
        self.pending, self.size = [], 0
        return records

    def landed(self) -> None:
        """What was taken is written."""
        self.since, self.put_again = None, 0
        if self.in_flight or self.in_flight_bytes or self.over:
            self.in_flight = self.in_flight_bytes = 0
            self.weigh()
        self.blobs.clear()

    def weigh(self) -> None:
        self.over = (
            len(self.pending) + self.in_flight >= MAX_RECORDS or self.size + self.in_flight_bytes >= MAX_BYTES
        )

    def put_back(self, records: list[Record]) -> None:
        """They could not be written: put them back at the front."""
        self.pending = records + self.pending
        self.in_flight, self.in_flight_bytes = 0, 0
        # Counted anew: more records may have been appended while these were being written.
        self.size = sum(len(record.payload) for record in self.pending)
        self.weigh()

    def wake_writers(self) -> None:
        """Writers that wait for room check again."""
        waiters, self.room_waiters = self.room_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def may_wait(self, error: BaseException) -> bool:
        """Whether a commit that failed with this error should be retried: the store may come back."""
        away = isinstance(error, StoreError) and error.retryable
        return away and self.since is not None and time.monotonic() - self.since < self.patience

    @property
    def full(self) -> bool:
        """Too much is unwritten (D-9). A run that continues without checkpoints may have more."""
        if self.outage is not None:
            return self.size + self.in_flight_bytes >= HELD_BYTES
        return self.over and not self.lazy


async def retry_while_unavailable(ask: Callable[[], Awaitable[T]], queue: RunQueue) -> T:
    """Calls until it succeeds, or the patience of that run is exhausted. For calls that may be repeated while
    the store is unavailable: reads, and idempotent writes."""
    began = time.monotonic()
    for pause in STORE_BACKOFF.pauses():
        try:
            return await ask()
        except StoreError as error:
            # A poisoned queue: the run is lost or stopped, so waiting longer for the store serves no purpose.
            if not error.retryable or queue.poison is not None or time.monotonic() - began >= queue.patience:
                raise
        await asyncio.sleep(pause)
    raise AssertionError("unreachable: the pauses never end")
