from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.testing.clock import FakeClock

MakeHouse = Callable[..., Any]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(auto=True)


@pytest.fixture(params=["memory", "sqlite"])
async def a_house(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock, anyio_backend: str
) -> AsyncIterator[MakeHouse]:
    """Makes houses over one store: once in memory, once in a SQLite file."""
    async with AsyncExitStack() as stack:
        first: list[Holdfast] = []

        async def make(**options: Any) -> Holdfast:
            if request.param == "sqlite":
                house = Holdfast(f"sqlite:{tmp_path / 'p.db'}", clock=clock, **options)
            elif not first:
                house = Holdfast("memory:", clock=clock, **options)
            else:
                house = Holdfast(await first[0].open(), clock=clock, **options)
            first.append(house)
            return await stack.enter_async_context(house)

        yield make
