"""An instance of each kind, whose holds take files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.testing.clock import FakeClock
from tests.holds.actions.scene import Scene
from tests.storage.canary import ring


@pytest.fixture(params=("memory", "sqlite", "encrypted"))
async def scene(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Scene]:
    clock = FakeClock()
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'holds.db'}"
    keys = ring() if request.param == "encrypted" else None
    async with Holdfast(address, clock=clock, keys=keys) as hf:
        yield Scene(hf, clock, await hf.holds())
