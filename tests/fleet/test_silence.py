"""A server that says nothing any more, and a network that does not tell: left after a time that is set."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.store.base import ClaimRequest
from holdfast.store.open import open_store
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.record import RunBatch
from tests.fleet.faults import swallowed

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
