"""A worker dies at every point that it passes in a pipeline of branches; another one goes on from there."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from holdfast import Context, Holdfast, Outcome, Result
from holdfast.app.flow import result_of
from holdfast.store.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, until_crash
from holdfast.types.ids import RunId
from holdfast.types.record import Kind
from holdfast.types.status import ENDED
from tests.attractor.stages import Stages
from tests.flows.places import COLD

RUN = "11111111-2222-4333-8444-555555555555"
NESTED = """digraph p {
    start [shape=Mdiamond]; end [shape=Msquare]; fan [shape=component]; join [shape=tripleoctagon];
    in [shape=component, join_policy=first_success]; meet [shape=tripleoctagon];
    start -> fan; fan -> a1 -> in; in -> x -> meet; in -> never -> meet; meet -> a2 -> join;
    fan -> b1 -> b2 -> join; join -> check; check -> start2 [label=anew, loop_restart=true];
    start2 -> fan; check -> end [label=out]; b1 [max_retries=1]
}"""
POINTS = (
    ("after_handler", "barrier"),
    ("after_substep", "barrier"),
    ("after_claim", "barrier"),
    # Each record by itself, not several in one commit.
    ("after_settle", "strict"),
    ("inside_settle", "strict"),
)


class Life:
    """What a pipeline does outside, over the deaths of those who run it."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.clock = FakeClock()
        self.store = MemoryStore(clock=self.clock)
        self.steps: Counter[str] = Counter()

    def stages(self) -> Stages:
        async def step(ctx: Context, _seen: dict[str, Any]) -> Outcome:
            place = f"{ctx.scope}{ctx.node}.{ctx.visit}"
            await ctx.step("deed", lambda: self.steps.update([place]), effect="read")
            return Outcome(update={"by": place})

        async def for_ever(_ctx: Context, _seen: dict[str, Any]) -> Outcome:
            await asyncio.Event().wait()
            return Outcome()

        async def check(ctx: Context, _seen: dict[str, Any]) -> Outcome:
            return Outcome(label="out" if ctx.restarts else "anew")

        async def flaky(ctx: Context, _seen: dict[str, Any]) -> Outcome:
            return Outcome() if ctx.failures else Outcome("retry")

        said = {"a1": step, "a2": step, "b2": step, "x": step, "never": for_ever}
        return Stages(NESTED, **said, check=check, b1=flaky)

    async def live(self, store: Any) -> Result:
        stages = self.stages()
        async with Holdfast(store, clock=self.clock, settings=COLD) as hf:
            known = await store.get_run(RUN)
            if known is not None and known.status in ENDED:
                return await result_of(await hf.service(), stages.program(), known.id)
            result = await (stages.go_on(hf, RUN) if known else stages.run(hf, run_id=RUN, mode=self.mode))
            while result.status == "waiting":
                self.clock.advance(seconds=1)
                result = await stages.go_on(hf, RUN)
            return result

    def dies(self, point: str, nth: int) -> bool:
        died = isinstance(until_crash(self.live, self.store, point, nth=nth), Crash)
        self.clock.advance(seconds=40)
        return died

    def ends(self) -> Result:
        ended = until_crash(self.live, self.store, "inside_prune")
        assert isinstance(ended, Result)
        return ended

    def settled(self) -> Counter[tuple[str, str, int]]:
        records = asyncio.run(self.store.read(RunId(RUN), first=0, last=None))
        return Counter((r.scope, r.node, r.visit) for r in records if r.kind == Kind.step)

    def replays(self) -> None:
        async def look() -> None:
            async with Holdfast(self.store, clock=self.clock, settings=COLD) as hf:
                hf.register(self.stages().program())
                service = await hf.service()
                assert (await service.replay(RUN)).same

        asyncio.run(look())


def calm(mode: str) -> tuple[Any, Counter[tuple[str, str, int]]]:
    life = Life(mode)
    result = life.ends().expect()
    return dict(result.state), life.settled()


@pytest.mark.covers("ATTRACTOR-RUN-01", "ATTRACTOR-RUN-02", "ATTRACTOR-PROOF-04", "ATTRACTOR-BOUND-06")
@pytest.mark.parametrize(("point", "mode"), POINTS)
def test_branches_come_to_the_same_end_wherever_their_worker_dies(point: str, mode: str) -> None:
    state, settled = calm(mode)
    assert set(settled.values()) == {1}
    deaths = 0
    for nth in range(1, 60):
        life = Life(mode)
        if not life.dies(point, nth):
            break
        deaths += 1
        result = life.ends().expect()
        assert dict(result.state) == state, (point, nth)
        assert life.settled() == settled, (point, nth)
        life.replays()
    assert deaths >= 1
