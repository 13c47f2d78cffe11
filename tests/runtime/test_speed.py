"""Single operations, timed against the published table (R-45 to R-48). The best of a few counts."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.runs.driver.load import load
from tests.flows.conftest import address_of
from tests.flows.places import COLD
from tests.runtime.people import Seen, State, line

pytestmark = pytest.mark.anyio
MEGABYTE = 1_000_000


async def best(work: Callable[[], Awaitable[Any]], times: int = 7) -> float:
    """Milliseconds."""
    found: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        await work()
        found.append((time.perf_counter() - started) * 1000)
    return min(found)


# Milliseconds of the table: a small save, a list of ten, a restore, a megabyte saved.
TABLE = {"sqlite": (5, 10, 5, 50), "postgres": (8, 15, 20, 80)}


@pytest.mark.soak  # a time: never judged on a machine that may be busy
@pytest.mark.covers("R-45", "R-46", "R-47", "R-47-postgres")
@pytest.mark.parametrize("store", TABLE)
async def test_small_checkpoints_are_saved_listed_and_restored_within_the_table(
    store: str, tmp_path: Path
) -> None:
    saves, lists, restores, _ = TABLE[store]
    flow = line("small", Seen(), *(f"n{i}" for i in range(10)), mode="strict")
    async with Holdfast(await address_of(store, tmp_path), settings=COLD) as hf:
        result = await flow.run({"text": "x" * 1000}, on=hf)
        service = await hf.service()
        program = flow.program()
        codec = service.runtime.codec_for(program)
        records = await service.store.read(result.run_id)
        bodies = [(record, codec.decode(record)) for record in records]

        async def encode() -> None:
            for record, body in bodies:
                codec.encode(record, body, 1)

        whole_run = await best(lambda: flow.run({"text": "x" * 1000}, on=hf))
        listing = await best(lambda: service.checkpoints(result.run_id, limit=10))
        restore = await best(
            lambda: load(service.store, codec, program.graph, result.run_id, blobs=service.runtime.blobs)
        )
        encoding = await best(encode)
    assert whole_run / 12 < saves, "a commit for each of ten strict steps, one for the start, one for the end"
    assert listing < lists
    assert restore < restores
    assert encoding / len(bodies) < 1


@pytest.mark.soak
@pytest.mark.covers("R-47", "R-47-postgres", "R-48", "RS-MORE-5")
@pytest.mark.parametrize("store", TABLE)
async def test_a_megabyte_is_saved_and_loaded_within_the_table(store: str, tmp_path: Path) -> None:
    flow = Flow("large", effect="pure", mode="strict")
    numbers = iter(range(1000))

    @flow.node
    async def make(s: State) -> State:
        # Never the same: equal values would share one blob.
        return {"data": bytes([next(numbers) % 256]) + _noise}

    async with Holdfast(await address_of(store, tmp_path), settings=COLD) as hf:
        result = await flow.run({}, on=hf)
        service = await hf.service()
        saving = await best(lambda: flow.run({}, on=hf), 5)
        loading = await best(lambda: service.latest(result.run_id), 5)
        assert (await service.latest(result.run_id)).state == result.state
    assert saving < TABLE[store][3]
    assert loading < 500


_noise = b"".join(i.to_bytes(4, "big") for i in range(0, MEGABYTE * 997, 3988))
