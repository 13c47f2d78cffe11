"""Breakpoints of a flow: a run stands still before a node until somebody says continue (BP-1 to BP-10)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import (
    Flow,
    FlowInvalidError,
    Holdfast,
    Join,
    Retry,
    RunStatus,
    Scripted,
)
from holdfast.errors import HoldNotFoundError
from holdfast.runs.history.timeline import make_timeline
from holdfast.types.status import HoldStatus
from tests.flows.conftest import node
from tests.flows.places import Place, answer, open_holds, told
from tests.flows.stops import KINDS, the_stop, with_stop

pytestmark = pytest.mark.anyio


@pytest.mark.covers("TOOL-CLI-23")
@pytest.mark.parametrize("kind", KINDS)
async def test_run_stands_still_before_a_node_of_any_kind_until_somebody_continues(
    place: Place, kind: str
) -> None:
    log: list[str] = []
    flow, hf = with_stop(kind, log), await place.hf()
    waiting = await flow.run({}, on=hf)
    assert waiting.status is RunStatus.pending_input
    hold = await the_stop(hf, waiting.run_id)
    assert (hold.node, hold.visit, hold.prompt) == ("x__breakpoint", 1, "Breakpoint before x")
    assert (hold.expires_at, hold.assignee) == (None, None)
    assert [option.id for option in hold.options or ()] == ["continue", "abort"]
    assert log == []

    await answer(hf, waiting, "continue")
    result = await flow.resume(waiting.run_id, on=hf)
    if kind == "hold":
        (real,) = await open_holds(hf, result)
        assert (real.node, real.type) == ("x", "approval")
        assert "decision" not in result.state
        await answer(hf, result, "yes")
        result = await flow.resume(waiting.run_id, on=hf)
    elif kind == "timer":
        assert result.status is RunStatus.waiting
        place.clock.advance(hours=2)
        result = await flow.resume(waiting.run_id, on=hf)
    else:
        assert log == ["x"] * (2 if kind == "map" else 1)
        assert "decision" not in result.state
    assert result.completed, result.error
    types = [event.type for event in await told(hf, result)]
    assert types.index("node.continued") > types.index("hold.opened")


@pytest.mark.covers("TOOL-CLI-23")
async def test_run_stops_at_each_turn_of_a_loop(hf: Holdfast) -> None:
    flow = Flow("turns", effect="pure")
    flow.node(id="x", breakpoint=True)(lambda s: {"n": s.get("n", 0) + 1})
    node(flow, "z")
    flow.loop("x", "x", when="n < 3", max=5)
    flow.edge("x", "z", when="n >= 3")
    result = await flow.run({}, on=hf)
    seen: list[tuple[int, str]] = []
    while result.waiting:
        hold = await the_stop(hf, result.run_id)
        seen.append((hold.visit, hold.prompt))
        await answer(hf, result, "continue")
        result = await flow.resume(result.run_id, on=hf)
    assert result.state["n"] == 3
    assert seen == [
        (1, "Breakpoint before x"),
        (2, "Breakpoint before x (visit 2)"),
        (3, "Breakpoint before x (visit 3)"),
    ]


async def test_retries_of_a_node_do_not_stop_again(place: Place) -> None:
    flow, calls = Flow("tries", effect="pure"), []

    @flow.node(breakpoint=True, retry=Retry(3, delay="1s"))
    async def x() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise ValueError("not yet")

    hf = await place.hf()
    waiting = await flow.run({}, on=hf)
    await answer(hf, waiting, "continue")
    result = await flow.resume(waiting.run_id, on=hf)
    while result.status is RunStatus.waiting:
        place.clock.advance(seconds=5)
        result = await flow.resume(waiting.run_id, on=hf)
    assert result.completed
    assert len(calls) == 3


async def test_fork_at_a_breakpoint_stands_there_too_and_goes_on_from_its_patch(hf: Holdfast) -> None:
    log: list[Any] = []
    flow = Flow("forks", effect="pure")
    node(flow, "a", {"items": [1, 2]})
    flow.map("x", over="items", body=log.append, into="out", breakpoint=True)
    flow.edge("a", "x")
    waiting = await flow.run({}, on=hf)
    hold = await the_stop(hf, waiting.run_id)
    forked = await flow.fork(hold.id, patch={"scratch": {"items": [7]}}, on=hf)
    assert forked.status is RunStatus.pending_input
    assert (await the_stop(hf, forked.run_id)).id != hold.id
    await answer(hf, forked, "continue")
    assert (await flow.resume(forked.run_id, on=hf)).completed
    assert log == [7]


async def test_hold_of_a_breakpoint_is_closed_when_its_branch_lost_the_join(hf: Holdfast) -> None:
    flow = Flow("races", effect="pure")
    node(flow, "a")
    node(flow, "slow", breakpoint=True)
    node(flow, "fast")
    node(flow, "z", join=Join("any", cancel_losers=True))
    flow.edge("a", "slow")
    flow.edge("a", "fast")
    flow.edge("slow", "z")
    flow.edge("fast", "z")
    result = await flow.run({}, on=hf)
    assert result.completed
    service = await hf.service()
    (hold,) = await service.store.holds(run=result.run_id)
    assert (hold.node, hold.status) == ("slow__breakpoint", HoldStatus.cancelled)


async def test_breakpoints_are_no_questions_to_people(hf: Holdfast) -> None:
    flow = with_stop("hold", [])
    waiting = await flow.run({}, on=hf)
    service = await hf.service()
    assert [hold.node for hold in await service.breakpoints()] == ["x__breakpoint"]
    assert await service.breakpoints(flow="other") == []
    assert await service.pending() == []
    with pytest.raises(HoldNotFoundError):
        await service.say(waiting.run_id, "continue")
    await answer(hf, waiting, "continue")
    await flow.resume(waiting.run_id, on=hf)
    assert [each.node for each in await service.pending()] == ["x"]
    assert await service.breakpoints(run=waiting.run_id) == []


@pytest.mark.covers("TOOL-CLI-23")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", ["true", 1, None])
def test_breakpoint_is_true_or_false(kind: str, stop: Any) -> None:
    with pytest.raises(FlowInvalidError, match="breakpoint"):
        with_stop(kind, [], stop).compile()


def test_breakpoint_whose_name_is_taken_is_refused() -> None:
    flow = Flow("clash", effect="pure")
    node(flow, "x", breakpoint=True)
    node(flow, "x__breakpoint")
    with pytest.raises(FlowInvalidError, match="x__breakpoint"):
        flow.compile()


def test_breakpoint_is_part_of_the_graph() -> None:
    marks = {with_stop("node", [], stop).compile().version for stop in (True, False)}
    assert len(marks) == 2


async def test_timeline_shows_the_stop_as_a_wait_of_its_node(hf: Holdfast) -> None:
    flow = with_stop("node", [])
    waiting = await flow.run({}, on=hf)
    service = await hf.service()
    stands = await make_timeline(service, await service.get(waiting.run_id))
    assert [(v.node, v.state) for v in stands.visits.all()] == [("a", "done"), ("x", "asking")]
    await answer(hf, waiting, "continue")
    await flow.resume(waiting.run_id, on=hf)
    over = await make_timeline(service, await service.get(waiting.run_id))
    assert [(v.node, v.state) for v in over.visits.all()] == [("a", "done"), ("x", "done"), ("z", "done")]
    (wait,) = over.visits.all()[1].waits
    assert (wait.kind, wait.decision, wait.until is not None) == ("person", "continue", True)


@pytest.mark.covers("TOOL-CLI-23")
async def test_agent_asks_its_model_only_after_the_breakpoint(hf: Holdfast) -> None:
    model = Scripted("Done.")
    flow = Flow("talks")
    flow.agent("bot", model=model, prompt="Hello", output="said", breakpoint=True)
    waiting = await flow.run({}, on=hf)
    assert ((await the_stop(hf, waiting.run_id)).node, model.requests) == ("bot__breakpoint", [])
    await answer(hf, waiting, "continue")
    assert (await flow.resume(waiting.run_id, on=hf)).expect().state["said"] == "Done."
    assert len(model.requests) == 1
