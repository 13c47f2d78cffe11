"""Waiting for a change."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit

LONG = 30.0


@pytest.mark.anyio
class WakeSuite:
    async def test_waiter_comes_back_when_the_time_is_over(self, kit: StoreKit) -> None:
        await asyncio.wait_for(kit.store.wait_change(0.05), LONG)

    async def test_waiter_wakes_when_another_creates_a_run(self, kit: StoreKit) -> None:
        async def create(store: Store) -> object:
            return await store.create(kit.new_run())

        await _wakes(kit, create)

    async def test_waiter_wakes_when_another_sends_a_message(self, kit: StoreKit) -> None:
        run = (await kit.created()).id
        await _wakes(kit, lambda store: store.send(run, "note", b""))

    async def test_waiter_wakes_when_another_answers(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease)
        await _wakes(kit, lambda store: store.change_hold(kit.decision(hold)))

    async def test_change_between_two_waits_is_not_missed(self, kit: StoreKit) -> None:
        run = (await kit.created()).id
        await _quiet(kit.store)
        await kit.race(1, lambda store, _number: store.send(run, "note", b""))
        began = time.monotonic()
        assert await asyncio.wait_for(kit.store.wait_change(LONG), LONG) is True
        assert time.monotonic() - began < LONG / 3

    async def test_worker_hears_of_a_run_that_came_after_it_looked(self, kit: StoreKit) -> None:
        await _quiet(kit.store)
        other = asyncio.create_task(kit.store.wait_change(LONG))
        await asyncio.sleep(0.05)
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL)) == []
        await kit.race(1, lambda store, _number: store.create(kit.new_run()))
        # Another waiter is woken first: that must not consume the signal of this one.
        assert await asyncio.wait_for(other, LONG) is True
        began = time.monotonic()
        assert await kit.store.wait_change(LONG) is True
        assert time.monotonic() - began < LONG / 3


async def _wakes(kit: StoreKit, act: Callable[[Store], Awaitable[object]]) -> None:
    await _quiet(kit.store)
    waiting = asyncio.create_task(kit.store.wait_change(LONG))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await kit.race(1, lambda store, _number: act(store))
    assert await asyncio.wait_for(waiting, LONG) is True
    assert time.monotonic() - began < LONG / 3


async def _quiet(store: Store) -> None:
    """Wait until earlier writes no longer wake a waiter. A store may wake without reason, but not forever."""
    for _ in range(20):
        if not await store.wait_change(0.05):
            return
    raise AssertionError("the store reports changes although nothing is written")
