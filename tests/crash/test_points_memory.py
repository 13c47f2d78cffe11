"""Each named crash point in every flow that passes it, in memory: the worker dies, the store stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from holdfast import Holdfast
from holdfast.store.memory import MemoryStore
from holdfast.store.protocols import Store
from holdfast.telemetry import CRASH_POINTS
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, armed, until_crash
from tests.crash import flows, life
from tests.crash.judge import Facts, judge
from tests.crash.world import World

ELSEWHERE = {"inside_prune", "inside_fork"}  # no run passes them by itself: they have tests of their own


class Case:
    """One run on one memory store, lived by as many workers as it takes."""

    def __init__(self, name: str, world: World) -> None:
        self.name, self.world, self.run = name, world, str(uuid4())
        self.clock = FakeClock(auto=True)
        self.store = MemoryStore(self.clock)
        self.facts: Facts = []

    def live(self, point: str, nth: int) -> bool:
        """Whether the worker died on the way."""
        flows.settle_in(self.world)
        return isinstance(until_crash(self._life(), self.store, point, nth=nth), Crash)

    def _life(self) -> Callable[[Store], Coroutine[Any, Any, None]]:
        async def whole(store: Store) -> None:
            async with Holdfast(store, clock=self.clock, settings=life.SETTINGS) as hf:
                await life.live(hf, self.name, self.run, self._say, self.clock.sleep)

        return whole

    def _say(self, *fact: Any, **more: Any) -> None:
        self.facts.append([*fact, more] if more else [*fact])

    def judge(self) -> None:
        judge(self.name, self.run, self.facts, self.world)
        asyncio.run(self._replay())

    async def _replay(self) -> None:
        """Whatever befell it, its decisions made again lead to the same place."""
        async with Holdfast(self.store, clock=self.clock) as hf:
            found = await hf.replay(self.run)
            assert found.same, (self.name, found.difference)


@cache
def passes(name: str) -> dict[str, int]:
    """How often an undisturbed life of that flow passes each point."""
    case = Case(name, World(Path("/dev/null"), sync=False))
    with ExitStack() as stack:
        counted = {p: stack.enter_context(armed(p, nth=0)) for p in CRASH_POINTS if p != "after_claim"}
        case.live("after_claim", 0)
    return {point: found.passed for point, found in counted.items()} | {"after_claim": 1}


def places(point: str) -> Iterator[tuple[str, int]]:
    """The first, the second, the middle and the last pass, in each flow."""
    for name in flows.FLOWS:
        count = passes(name)[point]
        for nth in sorted({1, 2, (count + 1) // 2, count} & set(range(1, count + 1))):
            yield name, nth


@pytest.mark.covers("CRASH-*-memory", "D-12", "D-39", "D-13", "CORE-PROOF-02", "CORE-PROOF-03", "P1")
@pytest.mark.covers("TOOL-TIME-05")
@pytest.mark.parametrize("point", [p for p in CRASH_POINTS if p not in ELSEWHERE])
def test_run_ends_as_in_peace_when_its_worker_dies_at_a_crash_point(point: str, tmp_path: Path) -> None:
    tried = list(places(point))
    assert tried, "no flow passes this point"
    for i, (name, nth) in enumerate(tried):
        case = Case(name, World(tmp_path / f"{i}.jsonl", sync=False))
        died = case.live(point, nth)
        # How many commits there are depends on what was ready together: a late pass may not come.
        assert died or nth > 2, (name, nth)
        case.clock.advance(seconds=1)
        assert not died or not case.live(point, 0), (name, nth)
        case.judge()
