"""The methods that stores on a server share: asked over the network, with the server's clock."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Generic, NoReturn, TypeVar
from weakref import WeakSet

from holdfast.errors import StoreError
from holdfast.store.change_signal import ChangeSignal
from holdfast.store.rows import RunRow
from holdfast.store.sql import hold_lists, run_inbox
from holdfast.store.sql.acknowledgements import Acknowledgements, log_stopped, send_counted
from holdfast.store.sql.connection import Query
from holdfast.store.sql.connection_pools import ServerPools
from holdfast.store.sql.heartbeat_thread import HeartbeatThread
from holdfast.store.sql.lost_history import stop_lost_run
from holdfast.store.sql.server_clock import ServerClock
from holdfast.store.sql.store import SqlStore
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.clock import SystemClock
from holdfast.types.event import EventRow
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldFilter, HoldOrder, HoldRow
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.record import RunBatch, SettleAnswer

T = TypeVar("T")
P = TypeVar("P", bound=ServerPools)


class ServerStore(SqlStore, Generic[P]):
    lists: ClassVar[hold_lists.HoldListDialect]
    """How the dialect lists holds."""

    def __init__(self, clock: ServerClock, pools: P, beats: HeartbeatThread, acks: Acknowledgements) -> None:
        self._acks = acks
        self._clock = clock
        self._pools = pools
        self._beats = beats
        self._queue_changes = ChangeSignal(SystemClock())
        # When a rate admits the next run that the last claim found queued.
        self._opens_at: int | None = None
        _open_stores.add(self)

    def now(self) -> int:
        return self._clock.now()

    def _server_time(self) -> int | None:
        return self._clock.given

    def abandon(self) -> None:
        """In a forked child. Connections stay with the parent, so the child must open its own store."""
        self._pools.abandon()
        self._beats.abandon()

    async def _read(self, query: Query[T], *, together: bool = False, slow: bool = False) -> T:
        return await (self._pools.read_together(query) if together else self._pools.read(query))

    def extend_now(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """`extend` for a heartbeat thread."""
        return self._beats.extend(leases, ttl)

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        """Never in place: the server is asked over the network."""
        return None

    def read_now(self, run: RunId, *, first: int, last: int) -> NoReturn:
        raise StoreError("a store over the network cannot read in place.", hint="Use `read`.")

    async def lost_history(self, known: AcknowledgedState) -> RunRow | None:
        return await self._write(partial(stop_lost_run, known=known), server_time=True)

    async def _came_back(self, run: RunId | None = None) -> bool:
        """Whether that run, or any, was lost in a failover and created again: then it is stopped."""
        known = self._acks.gone(run)
        if not known:
            return False
        behind = await self._pools.read(lambda conn: self._acks.dialect.find(conn, known))
        stops = False
        for each in self._acks.returned(known, behind):
            row = await self.lost_history(each)
            self._acks.found(each.run)
            log_stopped(row)
            stops = stops or row is not None
        return stops

    async def send(
        self,
        run: RunId,
        kind: str,
        payload: bytes,
        *,
        dedupe: str | None = None,
        event: EventRow | None = None,
    ) -> bool:
        now = self.now()
        given = {"run": run, "kind": kind, "payload": payload, "dedupe": dedupe, "event": event}
        work = partial(send_counted, run=run, send=partial(run_inbox.send, now=now, **given))
        sent, count = await self._write(lambda conn, _: work(conn), wakes=True)
        if sent:
            self._acks.mailed(run, count, now)
        return sent

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        done = await super().change_hold(change)
        if isinstance(done, HoldRow):
            self._acks.changed(done)
        return done

    async def list_holds(
        self,
        where: HoldFilter,
        *,
        order: HoldOrder = HoldOrder.oldest,
        after: Sequence[Any] | None = None,
        limit: int = 50,
    ) -> list[tuple[HoldRow, tuple[Any, ...]]]:
        query = partial(
            hold_lists.select, lists=self.lists, where=where, order=order, after=after, limit=limit
        )
        return await self._read(query, together=True)

    async def count_holds(self, where: HoldFilter, *, limit: int = 10_000) -> int:
        return await self._read(partial(hold_lists.count, lists=self.lists, where=where, limit=limit))


_open_stores: WeakSet[ServerStore[Any]] = WeakSet()


def forget(store: ServerStore[Any]) -> None:
    """It is closed: a forked child need not abandon it."""
    _open_stores.discard(store)


def _after_fork() -> None:
    for store in list(_open_stores):
        store.abandon()
    _open_stores.clear()


os.register_at_fork(after_in_child=_after_fork)
