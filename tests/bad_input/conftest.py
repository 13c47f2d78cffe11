"""Bad input through the public face. After every test the store is looked at: whatever was asked of it, it is
whole, every run in it can be read, none is left half-way, and a good run still works (CORE-BAD-20)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from holdfast.store.rows import RunFilter
from holdfast.types.status import RunStatus
from tests.cli.conftest import Cli, Said, cli, given, logs, refund
from tests.unit.store.sqlite_files import pragma

__all__ = ["Cli", "Said", "cli", "given", "logs", "refund"]

PLACES = ["memory", "sqlite"]


@pytest.fixture(params=PLACES)
async def hf(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Holdfast]:
    """A store that has to be intact when the test is over."""
    file = tmp_path / "bad.db"
    is_file = request.param == "sqlite"
    async with Holdfast(f"sqlite:{file}" if is_file else "memory:") as opened:
        yield opened
        await assert_intact(opened, file if is_file else None)


def good_flow() -> Flow:
    flow = Flow("good", effect="pure")
    flow.node(id="double")(lambda s: {"n": s["n"] * 2})
    return flow


async def assert_intact(hf: Holdfast, file: Path | None = None) -> None:
    """No run is half-way, each can be read back from its first record on, and the next run works."""
    service = await hf.service()
    for row in await service.list(RunFilter(), limit=1000):
        assert row.status not in (RunStatus.running, RunStatus.pending), f"{row.id} was left {row.status}"
        picture = await service.latest(row.id)
        assert picture.run == row.id
        events = await service.events(row.id, limit=100_000)
        assert [event.number for event in events] == sorted({event.number for event in events})
    result = await good_flow().run({"n": 21}, on=hf)
    assert result.completed
    assert result.state["n"] == 42
    if file is not None:
        assert pragma(file, "integrity_check") == "ok"
