"""Signals news to all followers in this process: one task polls the store for all of them.

Nothing is queued. Each follower has a position in the stored log and reads from there; recent events are kept
in memory, so that a thousand followers of one run cause one read. A slow follower reads the log at its own
pace: it does not slow others, and costs the memory of one number.

Runs of this process signal at once. Those of other processes are found by polling the last event number of
the followed runs; the store's feed would work too, but a long open transaction delays it, and one run's
stream should not wait for another run. Followers of all runs read the feed, and are woken when it has a row
for them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holdfast.api.live.channel import RunChannel, StreamSignal
from holdfast.api.problems import HttpError
from holdfast.errors import FeedTrimmedError, HoldfastError
from holdfast.runs.observer import combine_observers
from holdfast.telemetry import log

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.runs.driver.driver import Driver
    from holdfast.runs.service import RunService
    from holdfast.store.protocols import Store
    from holdfast.store.rows import RunRow
    from holdfast.types.ids import RunId
    from holdfast.types.lease import Lease
    from holdfast.types.record import Record
    from holdfast.types.status import RunStatus

PACE: Final = 0.04
"""Seconds between two polls while something happens. A settle in another process sends no signal."""
IDLE: Final = 0.1
"""The same when nothing has happened for a while."""
LATELY: Final = 5.0
SHARE: Final = 0.1
"""Maximum share of the time that is spent on polling."""
RECENT: Final = 5
"""Polls whose shortest counts: on a busy machine one of them is held up, and is no sign of a slow store."""
RETRY_SECONDS: Final = 0.5
"""Seconds until a store that did not answer is asked again."""
MANY: Final = 1000
"""Runs per query."""
PAGE: Final = 100
ENDS: Final = frozenset({"sessions_ended", "signed_out", "token_revoked"})
"""Actions in the audit after which a session or a token is no longer valid."""
SETTLED: Final = 0.3
"""Seconds after such an entry until the credentials of the tenant's sockets are checked again."""


class Hub:
    """The hub of one event loop. It polls only while there are followers."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._loop = asyncio.get_running_loop()
        self._channels: dict[RunId, RunChannel] = {}
        self._tenants: dict[str, tuple[StreamSignal, int]] = {}
        self._credentials: dict[str, tuple[StreamSignal, int]] = {}
        self._feed_signal = StreamSignal()
        self._feed_positions: dict[object, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._lately = 0.0
        self.closing = False
        self.closing_signal = StreamSignal()
        hf.on_service(self._attend)

    # ------------------------------------------------------------------ following
    def join(self, service: RunService, row: RunRow) -> RunChannel:
        """Call it before the first read, so that nothing is missed. End it with `leave`."""
        channel = self._channels.get(row.id)
        if channel is None:
            channel = self._channels[row.id] = RunChannel(service, row)
        channel.update_from(row)
        channel.followers += 1
        self._ensure_polling()
        return channel

    def leave(self, channel: RunChannel) -> None:
        channel.followers -= 1
        if not channel.followers:
            self._channels.pop(channel.run, None)

    def join_tenant(self, tenant: str) -> StreamSignal:
        """Signals when the tenant's audit may have grown; sometimes without a change."""
        signal, followers = self._tenants.get(tenant, (StreamSignal(), 0))
        self._tenants[tenant] = (signal, followers + 1)
        self._ensure_polling()
        return signal

    def leave_tenant(self, tenant: str) -> None:
        signal, followers = self._tenants.pop(tenant)
        if followers > 1:
            self._tenants[tenant] = (signal, followers - 1)

    @contextmanager
    def credential_news(self, tenant: str) -> Generator[StreamSignal]:
        """Signals when a session or token of the tenant may have ended, on whichever server, and when this
        hub closes."""
        signal, watchers = self._credentials.get(tenant, (StreamSignal(), 0))
        self._credentials[tenant] = (signal, watchers + 1)
        self._ensure_polling()
        try:
            yield signal
        finally:
            _, watchers = self._credentials.pop(tenant)
            if watchers > 1:
                self._credentials[tenant] = (signal, watchers - 1)

    async def wait_for_feed(self, after: int, seconds: float) -> None:
        """Returns when the feed has a row after this position, and at the timeout."""
        waiting = object()
        self._feed_positions[waiting] = after
        self._ensure_polling()
        try:
            await self._feed_signal.wait(seconds)
        finally:
            del self._feed_positions[waiting]

    def require_room(self, most: int) -> None:
        """Raises HttpError if there are too many streams."""
        runs = sum(channel.followers for channel in self._channels.values())
        if runs + sum(followers for _, followers in self._tenants.values()) >= most:
            raise HttpError(
                503, f"this server has {most:,} open streams, which is its limit.", code="too_many_streams",
                hint="Try again later, or use another server.", retry_after=5,
            )  # fmt: skip

    @property
    def followed(self) -> int:
        followed = (self._channels, self._tenants, self._credentials, self._feed_positions)
        return sum(len(each) for each in followed)

    def close(self) -> None:
        """End every stream, so that clients reconnect to another server."""
        self.closing = True
        self.closing_signal.notify()
        self._feed_signal.notify()
        for channel in self._channels.values():
            channel.signal.notify()
        for signal, _ in (*self._tenants.values(), *self._credentials.values()):
            signal.notify()
        if self._task is not None:
            self._task.cancel()

    # ------------------------------------------------------------------ polling
    def _ensure_polling(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        heads: dict[str, int] = {}
        recent: deque[float] = deque(maxlen=RECENT)
        while self.followed and not self.closing:
            began = time.monotonic()
            try:
                await self._ask_runs()
                await self._ask_tenants(heads)
                await self._ask_feed()
            except Exception as error:
                # Any error: all followers depend on this one task, which must not end.
                result = None if isinstance(error, HoldfastError) else error
                log.warning("streams wait: the store did not answer: %s", error, exc_info=result)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            recent.append(time.monotonic() - began)
            await asyncio.sleep(pause_after(recent, idle=began - self._lately >= LATELY))

    async def _ask_runs(self) -> None:
        store = await self._hf.open()
        # A copy: followers join and leave while the query runs.
        followed = list(self._channels)
        for part in _parts(followed, MANY):
            known = await store.event_heads(part)
            for run in part:
                channel = self._channels.get(run)
                if channel is not None and channel.head_moved(known.get(run)):
                    self._lately = time.monotonic()

    async def _ask_tenants(self, heads: dict[str, int]) -> None:
        store = await self._hf.open()
        for tenant in {*self._tenants, *self._credentials}:
            head, _hash = await store.audit_head(tenant)
            before = heads.get(tenant)
            if before == head:
                continue
            heads[tenant] = head
            self._lately = time.monotonic()
            if tenant in self._tenants:
                self._tenants[tenant][0].notify()
            if before is not None:
                await self._ask_credentials(store, tenant, before)

    async def _ask_credentials(self, store: Store, tenant: str, after: int) -> None:
        """Each end of a credential is in the audit."""
        if tenant not in self._credentials:
            return
        rows = await store.audit(tenant, after=after, limit=PAGE)
        if (len(rows) == PAGE or any(row.action in ENDS for row in rows)) and tenant in self._credentials:
            # The entry is written before the credential ends.
            self._loop.call_later(SETTLED, self._credentials[tenant][0].notify)

    async def _ask_feed(self) -> None:
        """Once for all who wait: those of them who are at the end of the feed have the same position."""
        if not self._feed_positions:
            return
        store = await self._hf.open()
        try:
            found = bool(await store.feed(after=min(self._feed_positions.values(), default=0), limit=1))
        except FeedTrimmedError:
            found = True  # the follower learns it from its own read
        if found:
            self._lately = time.monotonic()
            self._feed_signal.notify()

    # ------------------------------------------------------------------ runs of this process
    def _attend(self, service: RunService) -> None:
        service.runtime.observer = combine_observers(service.runtime.observer, _CommitWatch(self))

    def committed(self, run: RunId) -> None:
        if run in self._channels:
            self._channels[run].schedule_read()
        if self._tenants or self._feed_positions:
            self._lately = time.monotonic()

    def committed_threadsafe(self, run: RunId) -> None:
        """Signal from a worker of this instance in another thread."""
        if run in self._channels and not self._loop.is_closed():
            # Channels belong to the hub's loop; a worker may run in another thread.
            self._loop.call_soon_threadsafe(self.committed, run)

    def is_own_loop(self) -> bool:
        return asyncio.get_running_loop() is self._loop


class _CommitWatch:
    """Called with commits of this process. Returns at once: the run does not wait."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def began(self, driver: Driver) -> None:
        pass

    def committed(self, lease: Lease, records: list[Record]) -> None:
        if self._hub.is_own_loop():
            self._hub.committed(lease.run)
        else:
            self._hub.committed_threadsafe(lease.run)

    def left(self, driver: Driver, status: RunStatus | None, error: BaseException | None) -> None:
        pass

    async def close(self) -> None:
        pass


def pause_after(recent: Iterable[float], *, idle: bool) -> float:
    """Seconds until the next poll: longer when idle, and when the store is slow."""
    return min(RETRY_SECONDS, max(IDLE if idle else PACE, min(recent) / SHARE))


_hubs: WeakKeyDictionary[Holdfast, Hub] = WeakKeyDictionary()


def hub_of(hf: Holdfast) -> Hub:
    """The hub of this instance. Raises RuntimeError in another event loop than its own."""
    found = _hubs.get(hf)
    if found is None or found._loop.is_closed():  # pyright: ignore[reportPrivateUsage]
        found = _hubs[hf] = Hub(hf)
    return found


def close_streams(hf: Holdfast) -> None:
    """Ends every stream here; clients reconnect to another server, or to this one after its restart."""
    if (found := _hubs.get(hf)) is not None:
        found.close()


def _parts(all_of_them: Sequence[RunId], size: int) -> list[Sequence[RunId]]:
    return [all_of_them[at : at + size] for at in range(0, len(all_of_them), size)]
