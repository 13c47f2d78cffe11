"""Pipelines that nobody would draw, whose workers die wherever chance has it: they come to the same end."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from random import Random
from typing import Any, NamedTuple

import pytest

from holdfast import Context, Holdfast, Outcome, Result
from holdfast.app.flow import result_of
from holdfast.errors import PipelineInvalidError
from holdfast.store.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, until_crash
from holdfast.types.ids import RunId
from holdfast.types.record import Kind
from holdfast.types.status import ENDED
from tests.attractor.stages import Stages
from tests.attractor.test_walk_random import STATUSES, drawn
from tests.flows.places import COLD

RUN = "11111111-2222-4333-8444-555555555555"
POINTS = ("after_handler", "after_substep", "after_claim", "after_settle", "inside_settle")
NEVER = "inside_prune"
ROUNDS = 24


class End(NamedTuple):
    """What no crash may change. What a stage did outside is counted by its visits."""

    status: str
    reason: str
    state: dict[str, Any]
    settled: Counter[tuple[str, str, int, str]]
    completed: list[str]
    deeds: Counter[str]


def sketch(seed: int) -> str:
    """Branches one after the other where one of them decides: which comes first is no accident then."""
    random = Random(seed)

    def one_by_one(found: re.Match[str]) -> str:
        retries = f", max_retries={random.randint(1, 2)}" if random.random() < 0.3 else ""
        return f"{found[0]}{retries}" if found[1] == "wait_all" else f"{found[0]}{retries}, max_parallel=1"

    text = re.sub(r"join_policy=(\w+)", one_by_one, drawn(random))
    return text.replace("error_policy=fail_fast", "error_policy=fail_fast, max_parallel=1")


class Life:
    """One run over the deaths of those who drive it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.mode = Random(seed).choice(["barrier", "strict"])
        self.clock = FakeClock()
        self.store = MemoryStore(clock=self.clock)
        self.deeds: Counter[str] = Counter()

    def stages(self) -> Stages:
        stages = Stages(sketch(self.seed))

        async def work(ctx: Context, _seen: dict[str, Any]) -> Outcome:
            place = f"{ctx.scope}{ctx.node}.{ctx.visit}.{ctx.failures}"
            await ctx.step("deed", lambda: self.deeds.update([place]), effect="read")
            # Not by the attempt: a death is one too, and must not change what a stage says.
            random = Random(f"{self.seed} {place}")
            label, update = random.choice(["", "", "x"]), {"k": random.randint(0, 2)}
            return Outcome(random.choice(STATUSES), update, label, reason=f"by chance in {place}")

        stages.said = {f"s{i}": work for i in range(12)}
        return stages

    async def live(self, store: Any) -> Result:
        stages = self.stages()
        async with Holdfast(store, clock=self.clock, settings=COLD) as hf:
            known = await store.get_run(RUN)
            if known is not None and known.status in ENDED:
                return await result_of(await hf.service(), stages.program(), known.id)
            go_on = stages.go_on(hf, RUN) if known else stages.run(hf, run_id=RUN, mode=self.mode)
            result = await go_on
            while result.status == "waiting":
                self.clock.advance(seconds=1)
                result = await stages.go_on(hf, RUN)
            return result

    def dies(self, point: str, nth: int) -> bool:
        died = isinstance(until_crash(self.live, self.store, point, nth=nth), Crash)
        self.clock.advance(seconds=40)
        return died

    def end(self) -> End:
        result = until_crash(self.live, self.store, NEVER)
        assert isinstance(result, Result)
        records = asyncio.run(self.store.read(RunId(RUN), first=0, last=None))
        steps = [r for r in records if r.kind == Kind.step]
        return End(
            str(result.status),
            result.error.message if result.error else "",
            dict(result.state),
            Counter((r.scope, r.node, r.visit, str(r.outcome)) for r in steps),
            [r.node for r in steps if not r.scope],
            self.deeds,
        )

    def replays(self) -> bool:
        async def look() -> bool:
            async with Holdfast(self.store, clock=self.clock, settings=COLD) as hf:
                hf.register(self.stages().program())
                return (await (await hf.service()).replay(RUN)).same

        return asyncio.run(look())


def compare(seed: int) -> int:
    """How often a worker died. Reads are done again where a death came before their record; none is lost."""
    calm = Life(seed).end()
    random, life, deaths = Random(f"deaths {seed}"), Life(seed), 0
    for _ in range(random.randint(2, 5)):
        deaths += life.dies(random.choice(POINTS), random.randint(1, 6))
    ended = life.end()
    assert ended._replace(deeds=calm.deeds) == calm, (seed, sketch(seed))
    assert set(ended.deeds) == set(calm.deeds), (seed, sketch(seed))
    assert life.replays(), (seed, sketch(seed))
    return deaths


@pytest.mark.covers("ATTRACTOR-PROOF-04", "ATTRACTOR-BOUND-06", "AT-153", "AT-118", "AT-151")
@pytest.mark.parametrize("first", range(0, 2 * ROUNDS, ROUNDS))
def test_any_pipeline_comes_to_the_same_end_wherever_its_workers_die(first: int) -> None:
    deaths = 0
    for seed in range(first, first + ROUNDS):
        try:
            deaths += compare(seed)
        except PipelineInvalidError:
            continue
    assert deaths >= ROUNDS // 2
