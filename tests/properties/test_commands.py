"""The same commands on every store: the same answers, the same rows, and as the pure engine decides."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, with_scope
from holdfast.runs.encryption.cipher import FieldCipher
from holdfast.runs.encryption.store import with_encryption
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from tests.flows.conftest import address_of
from tests.properties.commands import FLOWS, RUNS, Command, World, commands

STORES = ("sqlite", "encrypted", "postgres")


async def opened(kind: str, folder: Path, clock: FakeClock) -> Store:
    if kind == "encrypted":
        ring = StaticKeys(with_scope(None, EVERYBODY, new_scope(datetime(2026, 1, 1, tzinfo=UTC))))
        return with_encryption(await open_store("memory:", clock=clock), FieldCipher(ring))
    return await open_store(await address_of(kind, folder), clock=clock)


async def performed(kind: str, given: list[Command]) -> tuple[list[Any], dict[str, Any]]:
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder:
        store = await opened(kind, Path(folder), clock)
        world = World(store, clock)
        try:
            answers = [await world.perform(command) for command in given]
            return answers, await world.rows()
        finally:
            await world.close()
            await store.close()


def assert_same(kind: str, given: list[Command]) -> None:
    async def both() -> None:
        expected, rows = await performed("memory", given)
        note(f"{list(zip(given, expected, strict=True))}")
        answers, found = await performed(kind, given)
        assert answers == expected
        assert found == rows

    asyncio.run(both())


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", STORES)
def test_stores_answer_the_same_commands_alike(kind: str) -> None:
    @given(given=commands(8))
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    def same(given: list[Command]) -> None:
        assert_same(kind, given)

    same()


@pytest.mark.soak
@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", STORES)
def test_stores_answer_the_same_commands_alike_for_long(kind: str) -> None:
    @given(given=commands(30))
    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    def same(given: list[Command]) -> None:
        assert_same(kind, given)

    same()


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("flow", FLOWS)
def test_every_flow_comes_to_its_end_by_commands(flow: str) -> None:
    """The commands reach what they are to compare."""
    run = RUNS[0]
    script: list[Command] = [("start", run, flow), ("advance", 601), ("resume", run)]
    script += [("answer", run, 0, "yes" if flow == "script" else "approve"), ("resume", run)]
    answers, rows = asyncio.run(performed("memory", script))
    assert answers[-1][0] == "completed"
    assert rows[run]["journal"]
