"""The same flows on every store: the same records, the same events, the same end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from holdfast import Holdfast, RunSettings
from holdfast.types.ids import RunId
from tests.crash import flows, life
from tests.crash.judge import Facts, end_of
from tests.crash.world import World
from tests.flows import conftest
from tests.flows.conftest import STORES, address_of

pytestmark = pytest.mark.anyio

# Those whose branches do not run beside each other: there the order is the flow's own.
ONE_BY_ONE = ("pure", "bare", "keyed", "strict", "loop", "sub", "script", "big")
SETTINGS = RunSettings(hot_timer=0.1, poll=0.05)


async def lived(store: str, name: str, folder: Path) -> dict[str, Any]:
    """What a run of that flow leaves there."""
    flows.settle_in(World(folder / f"{store}.jsonl", sync=False))
    facts: Facts = []
    run = str(uuid4())

    def say(*fact: Any, **more: Any) -> None:
        facts.append([*fact, more] if more else [*fact])

    async with Holdfast(await address_of(store, folder), settings=SETTINGS) as hf:
        await life.live(hf, name, run, say, asyncio.sleep)
        records = await (await hf.open()).read(RunId(run), first=0)
    end = end_of(facts)
    return {
        "end": {key: end[key] for key in ("status", "state", "artifacts", "error", "head", "event_seq")},
        "events": end["events"],
        "records": [(r.seq, r.kind, r.node, r.visit, r.effect, r.outcome, r.listed) for r in records],
        "effects": flows.WORLD.count(run),
    }


@pytest.mark.covers("FLEET-PG-13", "MB-7")
@pytest.mark.parametrize("name", ONE_BY_ONE)
async def test_run_leaves_the_same_journal_and_events_on_every_store(name: str, tmp_path: Path) -> None:
    memory, *others = [await lived(store, name, tmp_path) for store in STORES]
    for other in others:
        assert other == memory


@pytest.mark.covers("FLEET-PG-13", "PLATFORM-MARIADB-01")
def test_flows_are_run_on_every_store() -> None:
    """By the fixtures that all tests of this folder use."""
    assert set(STORES) == {"memory", "sqlite", "postgres", "mariadb"}
    for fixture in (conftest.hf, conftest.bare_hf, conftest.place):
        marker: Any = fixture
        assert tuple(marker._fixture_function_marker.params) == STORES
