from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast.store.memory import MemoryStore
from holdfast.store.rows import Capability
from holdfast.testing.conformance.kit import TTL, StoreKit
from tests.deadlines import HANG

pytestmark = [pytest.mark.anyio, pytest.mark.covers("D-12")]


@pytest.fixture
async def kit() -> StoreKit:
    async def opened(clock):
        return MemoryStore(clock)

    kit = StoreKit(opened)
    await kit.start()
    return kit


async def test_memory_store_claims_to_settle_inline_and_nothing_durable(kit: StoreKit) -> None:
    assert kit.store.capabilities == Capability.inline


async def test_buffer_that_could_change_is_refused_and_writes_nothing(kit: StoreKit) -> None:
    lease = await kit.claimed()
    with pytest.raises(AssertionError, match="buffer"):
        await kit.settle(lease, kit.record(1, payload=b""), kit.record(2, payload=bytearray(b"x")))
    assert (await kit.row(lease.run)).head == 0
    assert len(await kit.store.read(lease.run)) == 1


async def test_store_outlives_the_worker_that_is_dropped(kit: StoreKit) -> None:
    lease = await kit.claimed()
    await kit.written(lease, kit.record(1))
    await kit.store.close()
    newer = await kit.taken_over(lease)
    # The third event says that its worker fell silent.
    assert (await kit.written(newer, kit.record(2, term=newer.term))).event_from == 4


async def test_one_store_serves_workers_on_several_threads(kit: StoreKit) -> None:
    leases = [await kit.claimed() for _ in range(4)]

    def work(number: int) -> None:
        async def steps() -> None:
            for seq in range(1, 200):
                await kit.written(leases[number], kit.record(seq))
            assert await kit.store.extend([leases[number]], TTL) == [True]

        asyncio.run(steps())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    feed = await kit.store.feed(after=0, limit=9999)
    assert [row[0] for row in feed] == list(range(1, 4 * 200 + 1))
    assert {(await kit.row(lease.run)).head for lease in leases} == {199}


async def test_waiter_wakes_when_the_fake_clock_passes_its_timeout(kit: StoreKit) -> None:
    waiting = asyncio.create_task(kit.store.wait_change(3600))
    while not kit.clock.sleeping:  # noqa: ASYNC110
        await asyncio.sleep(0)
    kit.clock.advance(hours=1)
    assert await asyncio.wait_for(waiting, HANG) is False
