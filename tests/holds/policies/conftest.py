from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.testing.clock import FakeClock

MakeHoldfast = Callable[..., Any]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(auto=True)


@pytest.fixture(params=["memory", "sqlite"])
async def make_hf(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock, anyio_backend: str
) -> AsyncIterator[MakeHoldfast]:
    """Makes instances over one store: once in memory, once in a SQLite file."""
    async with AsyncExitStack() as stack:
        first: list[Holdfast] = []

        async def make(**options: Any) -> Holdfast:
            if request.param == "sqlite":
                hf = Holdfast(f"sqlite:{tmp_path / 'p.db'}", clock=clock, **options)
            elif not first:
                hf = Holdfast("memory:", clock=clock, **options)
            else:
                hf = Holdfast(await first[0].open(), clock=clock, **options)
            first.append(hf)
            return await stack.enter_async_context(hf)

        yield make
