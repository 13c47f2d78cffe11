"""Parallel stages as people see them: timelines, drawings, checkpoints, comparisons."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Holdfast, Outcome
from holdfast.drawing import Highlight
from holdfast.reports.postmortem import story_picture
from tests.attractor.stages import Stages
from tests.flows.test_two_folds import assert_alike

pytestmark = pytest.mark.anyio

RACE = """digraph race {
    start [shape=Mdiamond]; end [shape=Msquare]; fan [shape=component, join_policy=first_success];
    join [shape=tripleoctagon];
    start -> fan; fan -> slow -> late -> join; fan -> asks -> join; fan -> quick -> join; join -> end
}"""


async def for_ever(_ctx: Context, _seen: dict[str, Any]) -> Outcome:
    await asyncio.Event().wait()
    return Outcome()


async def asks(ctx: Context, _seen: dict[str, Any]) -> Outcome:
    await ctx.ask("Which?", options=["this", "that"])
    return Outcome()


async def a_moment(_ctx: Context, _seen: dict[str, Any]) -> Outcome:
    await asyncio.sleep(0.02)
    return Outcome(update={"n": 1})


def race() -> Stages:
    return Stages(RACE, slow=for_ever, asks=asks, quick=a_moment)


@pytest.mark.covers("ATTRACTOR-RUN-02")
async def test_events_and_records_tell_a_race_alike_and_both_are_drawn(hf: Holdfast) -> None:
    result = (await race().run(hf)).expect()
    await assert_alike(hf, result.run_id)
    service = await hf.service()
    graph = race().program().graph
    picture = story_picture(graph, await service.story(result.run_id))
    inside = next(node.inside for node in picture.nodes if node.id == "fan")
    assert inside is not None
    states = {node.id.rpartition("/")[2]: node.state for node in inside.nodes if node.label}
    assert (states["slow"].value, states["quick"].value) == ("skipped", "done")
    assert any(edge.mark is Highlight.taken for edge in picture.edges)


@pytest.mark.covers("ATTRACTOR-RUN-01")
async def test_every_stage_of_a_branch_is_a_checkpoint_with_the_branch_s_own_context(hf: Holdfast) -> None:
    stages = Stages(RACE.replace("first_success", "wait_all"), slow=Outcome(update={"a": 1}))
    result = (await stages.run(hf)).expect()
    service = await hf.service()
    found = [c for c in await service.checkpoints(result.run_id, limit=0) if c.node in ("slow", "late")]
    assert len(found) == 2
    whole = await service.checkpoint(result.run_id, found[0].seq)
    assert "fan.1[0]/late" in {each.label for each in whole.executions}


async def test_two_runs_of_a_fan_out_are_compared(hf: Holdfast) -> None:
    one = (await Stages(RACE, slow=Outcome(), asks=Outcome("fail")).run(hf)).expect()
    other = (await Stages(RACE, slow=Outcome("fail"), asks=Outcome()).run(hf)).expect()
    service = await hf.service()
    diff = await service.diff(one.run_id, other.run_id)
    assert diff
