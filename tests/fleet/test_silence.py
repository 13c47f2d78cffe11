"""A server that says nothing any more, and a network that does not tell: left after a time that is set."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.runs.sweeps import Reaper
from holdfast.store.base import ClaimRequest
from holdfast.store.open import open_store
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.record import RunBatch
from tests.fleet.faults import cut, swallowed

pytestmark = pytest.mark.anyio

# ?timeout=1&statement_timeout=1: one to find out, one more to connect anew, and the machine may be busy.
BOUND = 8.0


@pytest.mark.covers("FLEET-DEGR-01")
@pytest.mark.parametrize(
    "act",
    [
        "settle",
        "extend",
        pytest.param("read", marks=pytest.mark.soak),
        pytest.param("claim", marks=pytest.mark.soak),
        pytest.param("create", marks=pytest.mark.soak),
    ],
)
async def test_silent_connection_is_left_after_the_time_that_is_set(act: str, tmp_path: Path) -> None:
    async with swallowed(tmp_path) as fault:
        kit = StoreKit(lambda clock: open_store(fault.address, clock=clock))
        await kit.start()
        try:
            lease = await kit.claimed()
            acts: dict[str, Callable[[], Awaitable[object]]] = {
                "read": lambda: kit.store.get_run(lease.run),
                "settle": lambda: kit.store.settle([RunBatch(lease, [kit.record(1)])]),
                "claim": lambda: kit.store.claim(ClaimRequest(worker="w", ttl=3_000_000, limit=1)),
                "extend": lambda: asyncio.to_thread(kit.store.extend_now, [lease], 3_000_000),
                "create": lambda: kit.store.create(kit.new_run()),
            }
            await acts["read"]()
            if act == "extend":  # on a connection of its own, which is there with the first beat
                await acts["extend"]()
            fault.strike()
            began = time.monotonic()
            with pytest.raises(StoreError) as caught:
                await acts[act]()
            took = time.monotonic() - began
            assert caught.value.retryable
            assert took < BOUND, f"{act} took {took:.1f} s"
            fault.mend()
            assert (await kit.row(lease.run)).head in (0, 1)
            await acts[act]()
        finally:
            await kit.stop()


@pytest.mark.covers("FLEET-DEGR-01", "D-33")
async def test_reaper_lets_everybody_speak_first_when_the_store_was_away(tmp_path: Path) -> None:
    async with cut(tmp_path) as fault:
        kit = StoreKit(lambda clock: open_store(fault.address, clock=clock))
        await kit.start()
        lease = await kit.claimed()
        reaper = Reaper(kit.store, kit.clock, every=10.0)
        serving = asyncio.create_task(reaper.serve())

        async def later(seconds: float) -> None:
            """As much later, and it has looked."""
            kit.clock.advance(seconds=seconds)
            async with asyncio.timeout(20):
                await asyncio.sleep(0.05)
                while not kit.clock.sleeping:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

        try:
            await later(0)
            fault.strike()
            await later(10)
            kit.clock.advance(hours=1)  # nobody could extend a lease meanwhile
            await later(0)
            fault.mend()
            await later(10)
            assert (await kit.row(lease.run)).worker == lease.worker
            assert await kit.store.extend([lease], 20_000_000) == [True]
            await later(15)
            assert (await kit.row(lease.run)).recoveries == 0
            # Who says nothing now is dead.
            await later(30)
            assert (await kit.row(lease.run)).recoveries == 1
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await kit.stop()
