"""Flows run through the public face, on every store that needs no server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast


@pytest.fixture(params=["memory", "sqlite"])
async def house(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Holdfast]:
    """Where the flows of a test run: once in memory, once in a SQLite file."""
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as opened:
        yield opened
