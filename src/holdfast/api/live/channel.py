"""A run with followers: its recent events, and the number of its last known event."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from holdfast.api.schemas.events import EncodedEvent
from holdfast.errors import HoldfastError
from holdfast.runs.events import read_events
from holdfast.telemetry import log
from holdfast.types.redaction import tenant_scope
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow

PAGE: Final = 100
"""Maximum number of events per read of the log."""
RECENT_EVENTS: Final = 128
RECENT_BYTES: Final = 64 << 10
"""Events kept in memory; a follower that is further behind reads the log."""
RETRY_SECONDS: Final = 0.5


class StreamSignal:
    """Wakes waiting tasks. Read and wait without an await between them, so that no signal is missed."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        # Swapped before waking: a task that waits again at once must not be woken by the same signal.
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """False at the timeout."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        handle = future.get_loop().call_later(seconds, future.cancel)
        try:
            await asyncio.wait((future,))
            return not future.cancelled()
        finally:
            handle.cancel()
            self._waiting.discard(future)


class RunChannel:
    """`floor`: all events after this number, up to `last`, are in `_recent`. `over`: the run has ended with
    this event. `gone`: the run was deleted."""

    def __init__(self, service: RunService, row: RunRow) -> None:
        self.run = row.id
        self.signal = StreamSignal()
        self.followers = 0
        self.last = self.floor = row.event_seq
        self.over: int | None = None
        self.gone = False
        self._service = service
        self._recent: list[EncodedEvent] = []
        self._size = 0
        self._stirred = False
        self._reading: asyncio.Task[None] | None = None
        self.update_from(row)

    def update_from(self, row: RunRow) -> None:
        """A new follower has just read the run, and may know a later event."""
        if row.event_seq >= self.last:
            self.over = row.event_seq if row.status in ENDED else None

    # ------------------------------------------------------------------ news
    def schedule_read(self) -> None:
        """There may be something new."""
        self._stirred = True
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_on())

    def head_moved(self, head: int | None) -> bool:
        """The number of the run's last event in the store; None: it was deleted. Whether it is new."""
        if head is None:
            self.gone = True
            self.signal.notify()
            return False
        if head > self.last:
            self.schedule_read()
        return head > self.last

    async def _read_on(self) -> None:
        while self._stirred and self.followers:
            self._stirred = False
            try:
                await self._read()
            except Exception as error:
                result = None if isinstance(error, HoldfastError) else error
                log.warning("the stream of run %s waits: %s", self.run, error, exc_info=result)
                self._stirred = True
                await asyncio.sleep(RETRY_SECONDS)

    async def _read(self) -> None:
        # The row is read before the events: if it says that the run has ended, no event can be missing.
        row = await self._service.store.get_run(self.run)
        if row is None:
            self.gone = True
        else:
            result = await self._read_events(row, self.last)
            self._keep(result)
            # More to read; or the run advanced between the two reads, and only a newer row shows its end.
            self._stirred = self._stirred or len(result) == PAGE or self.last > row.event_seq
            self.over = row.event_seq if row.status in ENDED and self.last >= row.event_seq else None
        self.signal.notify()

    def _keep(self, lines: Sequence[EncodedEvent]) -> None:
        self._recent += lines
        self._size += sum(each.size for each in lines)
        if lines:
            self.last = lines[-1].number
        drop = 0
        while drop < len(self._recent) and (
            len(self._recent) - drop > RECENT_EVENTS or self._size > RECENT_BYTES
        ):
            self._size -= self._recent[drop].size
            self.floor = self._recent[drop].number
            drop += 1
        del self._recent[:drop]

    # ------------------------------------------------------------------ reading
    async def after(self, number: int) -> Sequence[EncodedEvent]:
        """The events after that number, at most a page. Empty: none yet."""
        # The follower is further behind than the memory
        # reaches: it reads the log itself and delays no other.
        if number < self.floor:
            row = await self._service.store.get_run(self.run)
            found = [] if row is None else await self._read_events(row, number)
            if found:
                return found
        place = bisect_right(self._recent, number, key=lambda each: each.number)
        return self._recent[place : place + PAGE]

    async def _read_events(self, row: RunRow, after: int) -> list[EncodedEvent]:
        events = await read_events(self._service, row, after=after, limit=PAGE)
        # The task that reads may have begun for a follower of another tenant.
        with tenant_scope(row.tenant):
            return [EncodedEvent(event) for event in events]
