"""Where pipelines run. After each test, a reader of a run's journal finds it where it stood in memory, and
deciding again from that journal leads to the same place."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast import Holdfast
from tests.cli.conftest import cli, logs
from tests.flows.conftest import Positions, assert_replays, positions

__all__ = ["cli", "logs", "positions"]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whoever runs the tests: no provider outside is ever asked."""
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)


@pytest.fixture
async def hf(anyio_backend: str, positions: Positions) -> AsyncIterator[Holdfast]:
    async with Holdfast("memory:") as opened:
        yield opened
        for run, live in positions.items():
            await assert_replays(opened, run, live)
