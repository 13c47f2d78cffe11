"""A store for several instances: the process of the old version, the one of the new."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.flows.places import Place, a_place


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Place]:
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'v.db'}"
    async with a_place(address) as found:
        yield found
