"""Another worker takes the run over at the worst moment: the loser writes nothing and tells what it knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest

from holdfast import Holdfast, LeaseLostError, RunSettings
from holdfast.store.memory import MemoryStore
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.store.rows import Claim, ClaimRequest
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import armed
from tests.crash import flows, life
from tests.crash.judge import Facts, judge
from tests.crash.stores import address_on
from tests.crash.world import World

TTL = 30.0
pytestmark = pytest.mark.anyio

Opener = Callable[[], Awaitable[Store]]


class Scene:
    """One run, the worker that has it, and the thief."""

    def __init__(self, store: Store, again: Opener, clock: FakeClock, world: World) -> None:
        self.store, self._again, self.clock, self.world = store, again, clock, world
        self.run = str(uuid4())
        self.stolen: Claim | None = None
        self.head = -1

    def hf(self) -> Holdfast:
        return Holdfast(self.store, clock=self.clock, settings=RunSettings(lease_ttl=TTL))

    def steal(self) -> None:
        """In a thread with a loop of its own: the worker stands in the middle of a step meanwhile."""
        self.clock.advance(seconds=TTL + 1)
        thread = Thread(target=lambda: asyncio.run(self._steal()))
        thread.start()
        thread.join()
        assert self.stolen is not None

    async def _steal(self) -> None:
        store = await self._again()
        want = ClaimRequest(worker="thief", ttl=int(TTL * 1e6), run=self.run)  # type: ignore[arg-type]
        (self.stolen,) = await store.claim(want)
        self.head = self.stolen.run.head
        if store is not self.store:
            await store.close()

    async def finish(self, name: str) -> Facts:
        """The thief falls silent too; a third worker goes on to the end."""
        self.clock.advance(seconds=TTL + 1)
        facts: Facts = []

        def say(*fact: object, **more: object) -> None:
            facts.append([*fact, more] if more else [*fact])

        async with self.hf() as hf:
            await life.live(hf, name, self.run, say, self.clock.sleep)
        judge(name, self.run, facts, self.world)
        return facts


@pytest.fixture(params=["memory", "sqlite", "postgres", "mariadb"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    clock = FakeClock(auto=True)
    world = World(tmp_path / "world.jsonl", sync=False)
    flows.settle_in(world)
    if request.param == "memory":
        kept = MemoryStore(clock)

        async def same() -> Store:
            return kept

        yield Scene(kept, same, clock, world)
        return
    address = address_on(request.param, tmp_path)

    async def another() -> Store:
        return await open_store(address, clock=clock)

    store = await another()
    yield Scene(store, another, clock, world)
    await store.close()


async def _lose(scene: Scene, point: str, name: str, nth: int) -> None:
    async with scene.hf() as hf:
        with armed(point, nth=nth, hit=scene.steal) as found, pytest.raises(LeaseLostError):
            await flows.FLOWS[name].run(flows.GIVEN[name], run_id=scene.run, on=hf)
    assert found.reached


@pytest.mark.covers(
    "CRASH-lease_lost_mid_handler-*", "CRASH-lease_lost_before_commit-*", "D-7", "D-17", "CORE-PROOF-04",
    "FLEET-PG-15",
)  # fmt: skip
@pytest.mark.parametrize("name", ["bare", "keyed", "split", "map", "script", "strict"])
@pytest.mark.parametrize("point", ["lease_lost_mid_handler", "lease_lost_before_commit"])
@pytest.mark.parametrize("nth", [1, 2, 3])
async def test_loser_writes_nothing_and_the_run_ends_as_in_peace_when_the_run_is_taken_over(
    scene: Scene, point: str, name: str, nth: int
) -> None:
    if name == "script" and point == "lease_lost_mid_handler":
        nth = 1  # a script is called once
    await _lose(scene, point, name, nth)
    assert scene.stolen is not None
    row = await scene.store.get_run(scene.stolen.run.id)
    assert row is not None
    assert (row.head, row.term, row.worker) == (scene.head, scene.stolen.lease.term, "thief")
    await scene.finish(name)


@pytest.mark.covers("D-17")
async def test_nobody_is_asked_when_the_fenced_worker_reported_how_the_effect_ended(scene: Scene) -> None:
    await _lose(scene, "lease_lost_mid_handler", "bare", 2)
    assert len(await scene.store.late_reports(scene.run)) == 1  # type: ignore[arg-type]
    facts = await scene.finish("bare")
    assert not [fact for fact in facts if fact[0] == "doubt"]
