"""A house on each store, into which others come by handles of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.store.base import Store
from holdfast.store.open import open_store
from holdfast.testing.clock import FakeClock
from tests.holds.proof.racing import Arena


@pytest.fixture(params=("memory", "sqlite"))
async def arena(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Arena]:
    clock = FakeClock()
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'holds.db'}?sync=normal"
    async with Holdfast(address, clock=clock) as house:
        store = await house.open()

        async def opener() -> Store:
            # Another handle on a store in memory is the store itself.
            return store if address == "memory:" else await open_store(address, clock=clock)

        yield Arena(house, store, clock, opener)
