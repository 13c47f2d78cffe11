"""Where documents run. After each test, deciding again from a run's journal leads to the same place."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast import Holdfast
from tests.cli.conftest import cli, logs
from tests.flows.conftest import Positions, assert_replays, positions

__all__ = ["cli", "logs", "positions"]


@pytest.fixture
async def hf(anyio_backend: str, positions: Positions) -> AsyncIterator[Holdfast]:
    async with Holdfast("memory:") as opened:
        yield opened
        for run, live in positions.items():
            await assert_replays(opened, run, live)
