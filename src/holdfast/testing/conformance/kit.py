"""The kit of the suite's tests: a store with a fake clock, and helpers for runs, records and races."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from holdfast.store.rows import Capability, ClaimRequest, NewRun
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.event import EventRow
from holdfast.types.hold import HoldChange, HoldRow, NewHold
from holdfast.types.ids import derived_id, new_run_id
from holdfast.types.record import Kind, Record, RunBatch, Side
from holdfast.types.status import HoldStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.store.protocols import Store
    from holdfast.store.rows import Claim, RunRow
    from holdfast.types.clock import Clock
    from holdfast.types.ids import HoldId, RunId
    from holdfast.types.lease import Lease
    from holdfast.types.record import SettleAnswer

    Opener = Callable[[Clock], Awaitable[Store]]

T = TypeVar("T")
TTL = 60 * MICROS
PATIENCE = 30.0  # seconds


class StoreKit:
    """`opener` opens the store under test; called again it returns another handle on the same data.

    A store in memory returns the same object again. `address` is for other processes. `sealed`: the content
    is encrypted, so that a record's size and digest are known only with its payload.
    """

    store: Store

    def __init__(self, opener: Opener, *, address: str | None = None, sealed: bool = False) -> None:
        self._opener = opener
        self.sealed = sealed
        self.address = address
        self.clock = FakeClock()

    async def start(self) -> None:
        self.store = await self._opener(self.clock)

    async def stop(self) -> None:
        await self.store.close()

    async def another(self) -> Store:
        return await self._opener(self.clock)

    def needs(self, capability: Capability) -> None:
        if capability not in self.store.capabilities:
            pytest.skip(f"this store does not claim {capability.name}")

    # -- making rows

    def new_run(self, **given: Any) -> NewRun:
        fields: dict[str, Any] = {
            "id": new_run_id(),
            "tenant": "default",
            "flow": "refund",
            "version": "v1",
            "code": "c1",
            "lane": "main",
            "priority": 0,
            "created_at": self.clock.now(),
            "ready_at": self.clock.now(),
            "first": [self.record(0, kind=Kind.created, term=0)],
        }
        return NewRun(**{**fields, **given})

    def record(self, seq: int, *, side: Side | None = None, **given: Any) -> Record:
        payload = given.get("payload", f"record {seq}".encode())
        fields: dict[str, Any] = {
            "seq": seq,
            "kind": Kind.step,
            "at": self.clock.now(),
            "term": 1,
            "node": "work",
            "visit": 1,
            "attempt": 1,
            "scope": "",
            "effect": "pure",
            "outcome": "success",
            "listed": True,
            "events": 1,
            "payload": payload,
            "digest": sha256(b"%d:" % seq + payload).digest(),
            "side": side,
        }
        return Record(**{**fields, **given})

    def new_hold(self, seq: int = 1, **given: Any) -> NewHold:
        fields: dict[str, Any] = {
            "id": derived_id(new_run_id(), seq),
            "seq": seq,
            "node": "approve",
            "scope": "",
            "visit": 1,
            "ordinal": 0,
            "type": "decision",
            "prompt": "Refund?",
            "options": None,
            "assignee": None,
            "priority": "normal",
            "context": b"{}",
            "schema": None,
            "created_at": self.clock.now(),
            "expires_at": None,
            "expiry_action": None,
            "request_hash": "h",
        }
        return NewHold(**{**fields, **given})

    def event(self, kind: str = "note", payload: bytes = b"{}") -> EventRow:
        return EventRow(0, self.clock.now(), kind, payload)

    # -- helpers

    async def created(self, **given: Any) -> RunRow:
        row, fresh = await self.store.create(self.new_run(**given))
        assert fresh
        return row

    async def claimed(self, **given: Any) -> Lease:
        """A new run with a lease on it (term 1, head 0)."""
        row = await self.created(**given)
        return (await self.claim(row.id)).lease

    async def claim(self, run: RunId, worker: str = "worker-1") -> Claim:
        (claim,) = await self.store.claim(ClaimRequest(worker=worker, ttl=TTL, run=run))
        return claim

    async def settle(self, lease: Lease, *records: Record) -> SettleAnswer:
        (answer,) = await self.store.settle([RunBatch(lease, list(records))])
        return answer

    async def written(self, lease: Lease, *records: Record) -> SettleAnswer:
        answer = await self.settle(lease, *records)
        assert answer.refusal is None
        return answer

    async def row(self, run: RunId) -> RunRow:
        row = await self.store.get_run(run)
        assert row is not None
        return row

    async def asked(self, lease: Lease, hold: NewHold | None = None, seq: int = 1) -> HoldId:
        """The run opens a hold, in its next record."""
        hold = hold or self.new_hold(seq)
        await self.written(lease, self.record(seq, kind=Kind.asked, term=lease.term, side=Side(holds=[hold])))
        return hold.id

    async def hold(self, hold: HoldId) -> HoldRow:
        row = await self.store.hold(hold)
        assert row is not None
        return row

    def decision(
        self,
        hold: HoldId,
        resolution: bytes = b'"approve"',
        by: str = "ada",
        *,
        event: EventRow | None = None,
    ) -> HoldChange:
        """The row of a new hold."""
        fields = {
            "status": HoldStatus.resolved,
            "resolution": resolution,
            "resolved_by": by,
            "resolved_at": self.clock.now(),
        }
        mail = ("answer", hold.encode())
        return HoldChange(
            hold=hold, version=1, at=self.clock.now(), fields=fields, mail=mail, event=event or self.event()
        )

    async def decide(
        self,
        hold: HoldId,
        resolution: bytes = b'"approve"',
        by: str = "ada",
        *,
        event: EventRow | None = None,
    ) -> HoldRow | None:
        """None if it could not be decided (any more)."""
        row = await self.store.change_hold(self.decision(hold, resolution, by, event=event))
        return row if isinstance(row, HoldRow) else None

    async def taken_over(self, lease: Lease) -> Lease:
        """The lease expires and another worker claims the run: `lease` has an old term now."""
        self.clock.advance(seconds=TTL // MICROS + 1)
        await self.store.reclaim(limit=10, max_recoveries=10)
        return (await self.claim(lease.run, "worker-2")).lease

    # -- the feed: on a shared server, open transactions of others delay it for a while

    async def feed_rows(self, count: int, *, after: int = 0) -> list[tuple[int, RunId, int, int]]:
        """The next `count` rows, once they exist."""
        async with asyncio.timeout(PATIENCE):
            while len(rows := await self.store.feed(after=after, limit=count)) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return rows

    async def whole_feed(self) -> list[tuple[int, RunId, int, int]]:
        """The whole feed so far. Creates one more run as a marker: once it appears, all rows before it are
        visible."""
        last = await self.created(lane="the last")
        async with asyncio.timeout(PATIENCE):
            while True:
                rows = await self.store.feed(after=0, limit=999)
                before = [row for row in rows if row[1] != last.id]
                if len(before) < len(rows):
                    return before
                await asyncio.sleep(0.02)

    # -- races

    async def race(self, contenders: int, act: Callable[[Store, int], Awaitable[T]]) -> list[T]:
        """Each contender has a separate thread, event loop and handle; all start at once."""
        start = threading.Barrier(contenders)
        loop = asyncio.get_running_loop()
        # A separate pool: the loop's has too few threads on a small machine, and all must start.
        with ThreadPoolExecutor(contenders) as pool:
            racing = [
                loop.run_in_executor(pool, self._run_contender, start, act, number)
                for number in range(contenders)
            ]
            return list(await asyncio.gather(*racing))

    def _run_contender(
        self, start: threading.Barrier, act: Callable[[Store, int], Awaitable[T]], number: int
    ) -> T:
        async def contend() -> T:
            handle = await self.another()
            try:
                # Blocking is intended: the loop has nothing else to run, and all must start together.
                start.wait(30)
                return await act(handle, number)
            finally:
                if handle is not self.store:
                    await handle.close()

        return asyncio.run(contend())
