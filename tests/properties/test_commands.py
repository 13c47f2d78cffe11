"""The same commands on every store: the same answers, the same rows, and as the pure engine decides."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, with_scope
from holdfast.runs.encryption.cipher import FieldCipher
from holdfast.runs.encryption.store import with_encryption
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from tests.flows.conftest import address_of
from tests.properties.commands import FLOWS, POINTS, RUNS, Command, World, commands

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
        answers, found = await performed(kind, given)
        assert answers == expected, given
        assert found == rows, given

    asyncio.run(both())


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", STORES)
def test_stores_answer_the_same_commands_alike(kind: str) -> None:
    @given(given=commands(8, 16))
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    def same(given: list[Command]) -> None:
        assert_same(kind, given)

    same()


RUN = RUNS[0]
ENDS: dict[str, list[Command]] = {
    "decided": [("answer", RUN, 0, "approve"), ("resume", RUN), ("answer", RUN, 0, "reject")],
    "late": [("answer", RUN, 0, "yes"), ("advance", 4000), ("answer", RUN, 0, "approve"), ("resume", RUN)],
    "cancelled": [("cancel", RUN), ("resume", RUN), ("answer", RUN, 0, "approve"), ("resume", RUN)],
    "cancelled after an answer": [("answer", RUN, 0, "approve"), ("cancel", RUN), ("resume", RUN)],
    "failed": [("resume", RUN), ("break", 2), ("resume", RUN), ("cancel", RUN)],
    **{
        f"crashed {point}": [
            ("answer", RUN, 0, "approve"), ("crash", RUN, point, 1), ("resume", RUN),
            ("crash", RUN, point, 1),
            ("answer", RUN, 0, "yes"), ("crash", RUN, point, 2), ("resume", RUN),
        ]
        for point in POINTS
    },
}  # fmt: skip


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("flow", FLOWS)
def test_stores_answer_alike_at_each_end_of_a_run(kind: str, flow: str) -> None:
    for end in ENDS.values():
        assert_same(kind, [("break", 2), ("start", RUN, flow), ("advance", 601), ("resume", RUN), *end])


@pytest.mark.soak
@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("kind", STORES)
def test_stores_answer_the_same_commands_alike_for_long(kind: str) -> None:
    @given(given=commands(8, 40))
    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    def same(given: list[Command]) -> None:
        assert_same(kind, given)

    same()


@pytest.mark.covers("SAFE-PROOF-02")
@pytest.mark.parametrize("flow", FLOWS)
def test_every_flow_comes_to_its_end_by_commands(flow: str) -> None:
    """The commands reach what they are to compare."""
    script: list[Command] = [("start", RUN, flow), ("advance", 601), ("resume", RUN)]
    script += [("answer", RUN, 0, "yes" if flow == "script" else "approve"), ("resume", RUN)]
    answers, rows = asyncio.run(performed("memory", script))
    assert answers[-1][0] == "completed"
    assert rows[RUN]["journal"]
