from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Holdfast
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.langgraph_ownership import LanggraphOwnershipSuite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class SaverKit:
    def __init__(self, address: str) -> None:
        self._address = address
        self._clock = FakeClock()
        self.open = AsyncExitStack()

    async def saver(self, **settings: Any) -> HoldfastSaver:
        hf = await self.open.enter_async_context(Holdfast(self._address, clock=self._clock))
        saver = HoldfastSaver(hf, **settings)
        self.open.push_async_callback(saver.aclose)
        return saver

    def expire(self) -> None:
        self._clock.advance(seconds=31)


@pytest.fixture
async def owners(tmp_path: Path) -> AsyncIterator[SaverKit]:
    kit = SaverKit(f"sqlite:{tmp_path / 'threads.db'}?sync=normal")
    async with kit.open:
        yield kit


class TestOwnership(LanggraphOwnershipSuite):
    pass
