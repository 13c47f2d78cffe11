"""A timeline (from events) and a story (from records) of a run have the same visits."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Retry
from holdfast.drawing import Highlight, Picture, State
from holdfast.reports.postmortem import story_picture
from holdfast.reports.run_graph import picture_of
from holdfast.runs.history.timeline import make_timeline
from holdfast.testing.conformance.flows import FLOWS, FlowCase

pytestmark = pytest.mark.anyio


def drawn(picture: Picture) -> tuple[dict[str, State], set[str]]:
    states = {node.id: node.state for node in picture.nodes if node.label}
    return states, {f"{edge.source}>{edge.target}" for edge in picture.edges if edge.mark is Highlight.taken}


async def assert_alike(hf: Holdfast, run: str) -> None:
    service = await hf.service()
    line = await make_timeline(service, await service.get(run))
    story = await service.story(run)
    names = ("label", "visit", "state", "attempts", "tokens", "started_at", "ended_at")
    seen, text = (
        [[getattr(each, name) for name in names] for each in side]
        for side in (line.visits.all(), story.visits)
    )
    assert sorted(seen, key=str) == sorted(text, key=str)
    by_events = picture_of(line.graph, line.visits, expand=True)
    assert drawn(by_events) == drawn(story_picture(line.graph, story))


@pytest.mark.covers("TOOL-CLI-05", "TOOL-TIME-07")
@pytest.mark.parametrize("case", FLOWS, ids=lambda case: case.name)
async def test_both_folds_tell_the_same_visits(case: FlowCase, bare_hf: Holdfast) -> None:
    result = await case.build().run(case.given, on=bare_hf)
    await assert_alike(bare_hf, result.run_id)


def troubled(fails: int) -> Flow:
    flow = Flow("troubled", effect="read")
    calls: list[int] = []

    @flow.node(retry=Retry(3, delay=0))
    async def work() -> dict[str, Any]:
        calls.append(1)
        if len(calls) <= fails:
            raise OSError("busy")
        return {"done": True}

    @flow.node(on_failure="skip")
    async def optional() -> None:
        raise ValueError("never")

    @flow.script
    async def asks(ctx: Context) -> dict[str, Any]:
        return {"said": (await ctx.ask("Go on?", options=["yes"])).decision}

    flow.edge(work, optional)
    flow.edge(work, asks)
    return flow


@pytest.mark.covers("TOOL-CLI-05", "TOOL-TIME-07")
@pytest.mark.parametrize("end", ["answered", "cancelled"])
async def test_both_folds_tell_the_same_of_a_run_in_trouble(end: str, bare_hf: Holdfast) -> None:
    flow, service = troubled(2), await bare_hf.service()
    result = await flow.run(on=bare_hf)
    if end == "answered":
        await service.answer(result.holds[0].id, "yes")
    else:
        await service.cancel(result.run_id)
    await flow.resume(result.run_id, on=bare_hf)
    await assert_alike(bare_hf, result.run_id)


@pytest.mark.covers("TOOL-CLI-05", "TOOL-TIME-07")
async def test_both_folds_tell_the_same_of_a_run_that_failed(bare_hf: Holdfast) -> None:
    result = await troubled(9).run(on=bare_hf)
    assert result.failed
    await assert_alike(bare_hf, result.run_id)
