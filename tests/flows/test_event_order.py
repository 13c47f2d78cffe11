"""The order of events is a promise (G-48), and the end of a run is told as R-18 has it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Event, Flow, Holdfast, Result, sum_
from tests.flows.conftest import node
from tests.flows.places import answer, told

pytestmark = [pytest.mark.anyio, pytest.mark.covers("G-48", "R-18")]

ENDS = {"node.completed", "node.failed", "node.skipped_failure", "node.unknown"}


def everything(fails: bool) -> Flow:
    """Branches, a loop, a sub-flow, a map, sub-steps, live output and a question."""
    child = Flow("child", effect="pure")
    node(child, "deep")
    flow = Flow("everything", effect="pure", reducers={"n": sum_})
    node(flow, "a", {"n": 1})

    @flow.script
    async def talks(ctx: Context) -> None:
        ctx.emit("half")
        await ctx.step("look", lambda: 1, effect="read")

    flow.subflow("sub", child)
    flow.map("each", over="items", body=lambda item: item, into="out")
    flow.hold("ask", prompt="Go?", options=["yes"])

    @flow.node
    async def z(s: dict[str, Any]) -> dict[str, Any]:
        if fails and s["n"] > 1:
            raise ValueError("no")
        return {"n": 1}

    for branch in ("talks", "sub", "each"):
        flow.edge("a", branch)
        flow.edge(branch, "ask")
    flow.edge("ask", z)
    flow.loop(z, z, when="n < 3", max=5)
    return flow


async def ran(hf: Holdfast, *, fails: bool = False, cancels: bool = False) -> tuple[Result, list[Event]]:
    flow = everything(fails)
    waiting = await flow.run({"items": [1, 2]}, on=hf)
    service = await hf.service()
    if cancels:
        await service.cancel(waiting.run_id)
    else:
        await answer(hf, waiting, "yes")
    result = await flow.resume(waiting.run_id, on=hf)
    return result, await told(hf, result)


CASES = [
    ("completed", {}),
    ("failed", {"fails": True}),
    ("cancelled", {"cancels": True}),
]


@pytest.mark.parametrize(("status", "how"), CASES)
async def test_run_is_reported_from_its_creation_to_its_end_and_the_checkpoint_of_its_end(
    hf: Holdfast, status: str, how: dict[str, Any]
) -> None:
    result, events = await ran(hf, **how)
    assert [e.number for e in events] == list(range(1, len(events) + 1))
    first, end, last = events[0], events[-2], events[-1]
    assert (first.type, set(first.data) >= {"flow", "version"}, first.run) == (
        "run.created",
        True,
        result.run_id,
    )
    assert end.type == f"run.{status}"
    assert end.data["duration_us"] == end.at - first.at
    assert end.data["output"] == result.artifacts
    assert last.type == "checkpoint.created"
    assert last.data["seq"] == end.data["seq"]
    assert [e.type for e in events].count("run.created") == 1


@pytest.mark.parametrize(("_status", "how"), CASES)
async def test_execution_is_reported_from_its_start_through_its_own_events_to_its_end(
    hf: Holdfast, _status: str, how: dict[str, Any]
) -> None:
    _, events = await ran(hf, **how)
    began: set[tuple[str, str]] = set()
    for event in events:
        here = (event.scope, event.node)
        if event.type == "node.started":
            assert here not in began
            began.add(here)
        elif event.type in ENDS:
            assert here in began
            began.remove(here)
        elif event.type.startswith(("node.", "hold.opened")):
            assert here in began, event
    own = [e.type for e in events if e.node == "talks" and e.type.startswith("node.")]
    assert (own[0], own[-1]) == ("node.started", "node.completed")
    assert set(own[1:-1]) == {"node.emitted", "node.step_done"}
    branches = {(e.scope, e.node) for e in events if e.type == "node.completed"}
    assert {
        ("", "talks"),
        ("sub.1[0]/", "deep"),
        ("each.1[0]/", "<lambda>"),
        ("each.1[1]/", "<lambda>"),
    } <= branches


@pytest.mark.parametrize(("_status", "how"), CASES)
async def test_transitions_and_checkpoints_are_reported_one_by_one(
    hf: Holdfast, _status: str, how: dict[str, Any]
) -> None:
    result, events = await ran(hf, **how)
    records = await (await hf.service()).store.read(result.run_id)
    assert [e.data["seq"] for e in events if e.type == "checkpoint.created"] == [
        r.seq for r in records if r.listed
    ]
    starts = [e for e in events if e.type == "node.started" and not e.scope]
    for event in starts:
        if event.node != "a":
            before = events[: event.number - 1]
            assert any(e.type in ("edge.taken", "loop.turned") for e in before), event
    taken = {(e.data["from"], e.data["to"]) for e in events if e.type == "edge.taken" and not e.scope}
    assert {
        ("a", "talks"),
        ("a", "sub"),
        ("a", "each"),
        ("talks", "ask"),
        ("sub", "ask"),
        ("each", "ask"),
    } <= taken
