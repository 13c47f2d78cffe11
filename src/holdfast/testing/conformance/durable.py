"""Stores that outlive their process, and stores that several processes share."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from holdfast.store.rows import Capability, FlowRow, RunFilter
from holdfast.types.record import NewTimer, Refusal, RunBatch, Side

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.ids import HoldId, RunId

# Another process, on its own clock: reads the head, sends a message.
VISITOR = """
import asyncio, sys
from holdfast.store.open import open_store

async def visit(address, run):
    store = await open_store(address)
    print((await store.get_run(run)).head)
    print(await store.send(run, "visit", b"from another process"))
    await store.close()

asyncio.run(visit(*sys.argv[1:]))
"""


async def everything(store: Store, run: RunId, hold: HoldId) -> list[object]:
    return [
        await store.get_run(run),
        await store.list_runs(RunFilter(), after=None, limit=9),
        await store.read(run),
        await store.events(run, after=0, limit=99),
        await store.feed(after=0, limit=99),
        await store.pending(run),
        await store.next_timer(),
        await store.late_reports(run),
        await store.hold(hold),
        await store.flows(),
        await store.blob(b"d"),
    ]


@pytest.mark.anyio
class DurableSuite:
    @pytest.mark.covers("G-4")
    async def test_all_that_was_written_is_there_after_reopening(self, kit: StoreKit) -> None:
        kit.needs(Capability.durable)
        lease = await kit.claimed(idempotency_key="k")
        hold = await kit.asked(lease)
        await kit.store.put_blob(b"d", 1, b"x")
        side = Side(timers=[NewTimer("t", 5)], blobs=[b"d"], error="e")
        await kit.written(lease, kit.record(2, side=side))
        await kit.store.send(lease.run, "note", b"n", dedupe="k", event=kit.event())
        await kit.decide(hold, event=kit.event())
        await kit.store.report_late(lease.run, 1, b"late")
        await kit.store.put_flow(FlowRow(name="f", version="v", graph=b"g", created_at=1))
        await kit.whole_feed()
        before = await everything(kit.store, lease.run, hold)
        await kit.stop()
        await kit.start()
        assert await everything(kit.store, lease.run, hold) == before
        # The lease too: a worker that lost its connection continues.
        assert (await kit.settle(lease, kit.record(3))).refusal is None
        assert await kit.store.send(lease.run, "note", b"n", dedupe="k") is False
        assert (await kit.store.create(kit.new_run(idempotency_key="k")))[1] is False

    @pytest.mark.covers("CORE-STORE-05", "G-4")
    async def test_two_handles_see_and_fence_each_other(self, kit: StoreKit) -> None:
        kit.needs(Capability.shared)
        other = await kit.another()
        try:
            lease = await kit.claimed()
            await kit.written(lease, kit.record(1))
            assert (await other.read(lease.run, first=1))[0].payload == b"record 1"
            kit.clock.advance(seconds=61)
            (row,) = await other.reclaim(limit=9, max_recoveries=9)
            assert row.id == lease.run
            assert (await kit.settle(lease, kit.record(2))).refusal is Refusal.fenced
            (answer,) = await other.settle([RunBatch(lease, [kit.record(1)])])
            assert answer.refusal is None
        finally:
            await other.close()

    @pytest.mark.covers("CORE-STORE-05", "G-4")
    async def test_another_process_sees_and_is_seen(self, kit: StoreKit) -> None:
        kit.needs(Capability.shared)
        if kit.address is None:
            pytest.skip("the kit names no address for another process")
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1))
        command = [sys.executable, "-c", VISITOR, kit.address, lease.run]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)  # noqa: ASYNC221
        assert done.stdout.split() == ["1", "True"], done.stderr
        _, (message,) = await kit.store.pending(lease.run)
        assert message.payload == b"from another process"

    @pytest.mark.covers("RS-DB-2")
    async def test_closing_twice_is_fine(self, kit: StoreKit) -> None:
        await kit.created()
        await kit.store.close()
        await kit.store.close()
