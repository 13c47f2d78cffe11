"""Dying while a run is branched off or pruned: it is done wholly or not at all, and can be done again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from holdfast import Holdfast
from holdfast.store.memory import MemoryStore
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import EXIT_CODE, Crash, environment, until_crash
from tests.crash import flows, life, resume
from tests.crash.judge import Facts, Victim, in_peace, judge
from tests.crash.world import World

# (deed, point, pass). `after_blob_put` and `inside_settle` are passed by the branch's own life too.
PLACES = [("fork", "inside_fork", 1), ("rewind", "inside_fork", 1), ("prune", "inside_prune", 1)]


class InMemory:
    def __init__(self, deed: str, world: World) -> None:
        self.deed, self.world, self.clock = deed, world, FakeClock(auto=True)
        self.store = MemoryStore(self.clock)
        self.run, self.branch = str(uuid4()), str(uuid4())
        self.facts: Facts = []

    def live(self, point: str, nth: int) -> bool:
        flows.settle_in(self.world)
        self.clock.advance(seconds=1)
        return isinstance(until_crash(self._life(), self.store, point, nth=nth), Crash)

    def _life(self) -> Callable[[Store], Coroutine[Any, Any, None]]:
        async def whole(store: Store) -> None:
            async with Holdfast(store, clock=self.clock, settings=life.SETTINGS) as hf:
                await resume.DEEDS[self.deed](hf, self.run, self.branch, self._say, self.clock.sleep)

        return whole

    def _say(self, *fact: Any, **more: Any) -> None:
        self.facts.append([*fact, more] if more else [*fact])


class InProcess(Victim):
    def __init__(self, deed: str, folder: Path, store: str = "sqlite") -> None:
        super().__init__(folder, deed, store)
        self.deed, self.branch = deed, str(uuid4())

    def die(self, point: str, nth: int) -> bool:
        return self.end(self.start(self.branch, **environment(point, nth))) == EXIT_CODE

    def go_on(self) -> bool:
        return self.end(self.start(self.branch)) == 0


@pytest.mark.covers("CRASH-inside_fork-memory", "CRASH-inside_prune-memory", "D-12", "D-39")
@pytest.mark.parametrize(("deed", "point", "nth"), PLACES)
def test_deed_is_done_wholly_or_not_at_all_when_the_worker_dies_in_it(
    deed: str, point: str, nth: int, tmp_path: Path
) -> None:
    case = InMemory(deed, World(tmp_path / "world.jsonl", sync=False))
    assert case.live(point, nth), "the point was not reached"
    before = len(case.facts)
    assert not case.live(point, 0)
    check(case, case.facts[before:])


@pytest.mark.covers("CRASH-inside_fork-sqlite", "CRASH-inside_prune-sqlite", "D-39")
@pytest.mark.parametrize(("deed", "point", "nth"), PLACES)
def test_deed_is_done_wholly_or_not_at_all_when_the_process_dies_in_it(
    deed: str, point: str, nth: int, tmp_path: Path
) -> None:
    case = InProcess(deed, tmp_path)
    assert case.die(point, nth), "the point was not reached"
    before = len(case.facts)
    assert case.go_on()
    check(case, case.facts[before:])


def check(case: InMemory | InProcess, after: Facts) -> None:
    """`after`: what the second life said. In the first one nothing of the deed was done."""
    said = {fact[0]: fact[1:] for fact in after}
    if case.deed == "prune":
        assert said["horizon"] == [0]
        horizon, state = said["pruned"]
        assert horizon > 0
        assert state == in_peace("loop").end["state"]
        return
    assert said["branch"] == [False], "half a branch was left"
    assert said["branched"] == [case.branch]
    flow = {"fork": "bare", "rewind": "sub"}[case.deed]
    if case.deed == "fork":
        judge(flow, case.run, [fact for fact in case.facts if fact[0] == "end"][:1], case.world)
        assert set(case.world.count(case.branch)) == set(in_peace(flow).effects) - {"bare0/1"}
    else:
        assert said["source"] == ["cancelled", case.branch]
        assert not case.world.count(case.run)
        assert dict(case.world.count(case.branch)) == in_peace(flow).effects
    assert said["end"][-1]["state"] == in_peace(flow).end["state"]
