"""Pipelines that nobody would draw: they end, for a reason that is told, and replay to the same place."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from holdfast import Context, Holdfast, Outcome
from holdfast.errors import PipelineInvalidError
from tests.attractor.stages import Stages

pytestmark = pytest.mark.anyio

SHAPES = ("box", "box", "box", "diamond", "component", "component", "tripleoctagon")
CONDITIONS = (
    "",
    "",
    "",
    "outcome=success",
    "outcome=fail",
    "outcome!=success",
    "context.k=1",
    "context.k!=1",
)
STATUSES = ("success", "success", "success", "partial_success", "fail", "fail", "retry", "skipped", "port")
POLICIES = ("wait_all", "first_success", "quorum")
REASONS = {"node_failed", "loop_limit"}


def drawn(random: Random) -> str:
    names = [f"s{i}" for i in range(random.randint(4, 12))]
    lines = ["graph [max_visits=4, max_goal_jumps=2, max_restarts=2, retry_target=s1];"]
    lines += [_stage(random, name, names) for name in names]
    for i, name in enumerate(names):
        for _ in range(random.randint(1, 3)):
            ahead = names[i + 1 :] or ["end"]
            target = random.choice(ahead if random.random() < 0.8 else names)
            lines.append(_link(random, name, target))
    ends = f"start [shape=Mdiamond]; end [shape=Msquare]; start -> s0; {names[-1]} -> end;"
    return f"digraph p {{ {ends} {' '.join(lines)} }}"


def _stage(random: Random, name: str, names: list[str]) -> str:
    given = [f"shape={random.choice(SHAPES)}", f"join_policy={random.choice(POLICIES)}"]
    if random.random() < 0.2:
        given.append("goal_gate=true")
    if random.random() < 0.2:
        given.append(f"retry_target={random.choice(names)}")
    if random.random() < 0.1:
        given.append("error_policy=fail_fast")
    if random.random() < 0.3:
        given.append("max_parallel=1")
    return f"{name} [{', '.join(given)}];"


def _link(random: Random, source: str, target: str) -> str:
    given = [f"weight={random.randint(0, 2)}"]
    condition = random.choice(CONDITIONS)
    if condition:
        given.append(f'condition="{condition}"')
    if random.random() < 0.05:
        given.append("loop_restart=true")
    return f"{source} -> {target} [{', '.join(given)}];"


def works(seed: int) -> Callable[[Context, dict[str, Any]], Any]:
    async def work(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        random = Random(f"{seed} {ctx.scope} {ctx.node} {ctx.visit} {ctx.attempt}")
        label = random.choice(["", "", "x"])
        return Outcome(random.choice(STATUSES), {"k": random.randint(0, 2)}, label, reason="by chance")

    return work


@pytest.mark.covers("ATTRACTOR-RUN-01", "AT-111", "AT-70")
@pytest.mark.parametrize("first", range(0, 240, 40))
async def test_any_pipeline_ends_for_a_reason_and_replays(hf: Holdfast, first: int) -> None:
    ways: set[str] = set()
    for seed in range(first, first + 40):
        source = drawn(Random(seed))
        try:
            stages = Stages(source)
        except PipelineInvalidError:
            continue
        stages.said = {f"s{i}": works(seed) for i in range(12)}
        result = await stages.run(hf)
        assert result.completed or (result.error and result.error.code in REASONS), (
            seed,
            result.error,
            source,
        )
        ways.add(str(result.status))
    assert ways == {"completed", "failed"}
