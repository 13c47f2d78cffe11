"""An instance on each store, into which others come by handles of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from tests.crash.stores import address_on
from tests.holds.races.race import Arena
from tests.storage.canary import ring

# Rounds with all tests, where a server takes its time; with the soak there are two hundred everywhere.
SOME = {"few": 6, "few_mariadb": 6, "memory": 40, "sqlite": 40, "encrypted": 40}
LONG = [pytest.param(name, marks=pytest.mark.soak) for name in ("memory_long", "sqlite_long")]


# Encryption is a store around another: what is asked of it is asked by name.
@pytest.fixture(params=("memory", "sqlite", "few", "postgres", "few_mariadb", "mariadb", *LONG))
async def arena(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Arena]:
    clock = FakeClock()
    address = address_of(request.param, tmp_path)
    keys = ring() if request.param == "encrypted" else None
    async with Holdfast(address, clock=clock, keys=keys) as hf:
        store = await hf.open()

        async def opener() -> Store:
            # Another handle on a store in memory is the store itself.
            return store if address == "memory:" else await open_store(address, clock=clock)

        yield Arena(hf, store, clock, opener, at_most=SOME.get(request.param))


def address_of(store: str, folder: Path) -> str:
    if store.endswith("mariadb"):
        return address_on("mariadb", folder)
    if store in ("few", "postgres"):
        return address_on("postgres", folder)
    return f"sqlite:{folder / 'holds.db'}?sync=normal" if store.startswith("sqlite") else "memory:"
