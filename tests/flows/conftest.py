"""Flows run through the public face, on every store that needs no server.

Whatever a test here does, one invariant is checked after it: where each run stood in memory is where a
reader of its journal finds it, from the first record on and from the newest snapshot on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.model.position import Position
from holdfast.model.snapshot import dump_position
from holdfast.runs.driver.load import fetch_and_apply, load, start_from
from holdfast.runs.driver.runtime import Runtime
from holdfast.store.rows import Claim
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.flows.places import Place, a_place
from tests.services import mariadb, postgres

Positions = dict[RunId, Position]

# Records of a run that is replayed too: deciding ten thousand steps again takes a second.
SHORT = 3_000
STORES = ("memory", "sqlite", "postgres", "mariadb")


async def address_of(store: str, folder: Path) -> str:
    """An empty store of this kind."""
    if store == "memory":
        return "memory:"
    if store == "sqlite":
        return f"sqlite:{folder / 'h.db'}"
    if store == "mariadb":
        await mariadb.empty(mariadb.database("flows"))
        return mariadb.database("flows")
    address = postgres.with_setting(postgres.database(), schema="flows")
    await postgres.empty("flows")
    return address


@pytest.fixture
def positions(monkeypatch: pytest.MonkeyPatch) -> Positions:
    """Where each run stood in memory when its driver let go of it."""
    seen: Positions = {}
    drive = Runtime.drive

    async def remember(self: Runtime, claim: Claim, *more: Any, **options: Any) -> tuple[RunStatus, Position]:
        seen.pop(claim.run.id, None)
        status, pos = await drive(self, claim, *more, **options)
        seen[claim.run.id] = pos
        return status, pos

    monkeypatch.setattr(Runtime, "drive", remember)
    return seen


@pytest.fixture(params=STORES)
async def hf(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str, positions: Positions
) -> AsyncIterator[Holdfast]:
    """Where the flows of a test run: once in memory, once in a SQLite file."""
    address = await address_of(request.param, tmp_path)
    async with Holdfast(address) as opened:
        yield opened
        for run, live in positions.items():
            await assert_replays(opened, run, live)


@pytest.fixture(params=STORES)
async def bare_hf(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[Holdfast]:
    """An instance whose runs are not replayed afterwards: the test damages, prunes or deletes them."""
    address = await address_of(request.param, tmp_path)
    async with Holdfast(address) as opened:
        yield opened


async def assert_replays(hf: Holdfast, run: RunId, live: Position) -> None:
    """Folding the journal leads to where the run stood in memory."""
    service = await hf.service()
    runtime = service.runtime
    row = await service.get(run)
    program = runtime.program_for(row.version, row.flow)
    codec = runtime.codec_for(program)
    records = await service.store.read(run, first=0, last=live.head)
    first = await runtime.blobs.fill_body(codec.decode(records[0]), codec.registry)
    folded = start_from(program.graph, codec, run, records[0], body=first)
    for record in records[1:]:
        await fetch_and_apply(program.graph, folded, record, codec.decode(record), runtime.blobs, codec)
    await runtime.blobs.materialise(folded, codec.registry)
    expected = dump_position(live)
    assert dump_position(folded) == expected
    if live.head < SHORT:
        again = await service.replay(run, upto=live.head)
        assert again.same, again.difference
    short = await load(service.store, codec, program.graph, run, blobs=runtime.blobs, upto=live.head)
    await runtime.blobs.materialise(short.pos, codec.registry)
    assert dump_position(short.pos) == expected


async def visits_of(hf: Holdfast, run: str, node: str) -> int:
    """How often a node settled in this run."""
    service = await hf.service()
    records = await service.store.read(RunId(run), first=0, last=None)
    return sum(1 for record in records if record.node == node and record.kind == 6)


def node(flow: Flow, name: str, update: dict[str, Any] | None = None, **options: Any) -> str:
    """A node that returns a fixed update."""

    async def handler() -> Any:
        return dict(update) if update is not None else None

    return flow.node(id=name, **options)(handler)


@pytest.fixture(params=STORES)
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str, positions: Positions
) -> AsyncIterator[Place]:
    """A store and a clock for several instances: workers that die, and others that go on."""
    address = await address_of(request.param, tmp_path)
    async with a_place(address) as found:
        yield found
        for run, live in positions.items():
            await assert_replays(await found.reader(run), run, live)
