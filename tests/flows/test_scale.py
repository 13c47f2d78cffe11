"""Graphs that are wide or long cost what they have, not its square."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from holdfast import Flow, Holdfast, any_of, quorum
from holdfast.testing.conformance.flows import add
from tests.flows.conftest import node

# Calls are counted: they are the same on every store.
STORES = ["memory", *(pytest.param(name, marks=pytest.mark.soak) for name in ("sqlite", "postgres"))]
pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("hf", STORES, indirect=True)]


def fan(width: int, join: Any = "all") -> Flow:
    flow = Flow(f"fan{width}", effect="pure", reducers={"log": "append"})

    async def work() -> dict[str, Any]:
        return {"log": [1]}

    node(flow, "a")
    for i in range(width):
        flow.node(id=f"n{i}")(work)
        flow.edge("a", f"n{i}")
        flow.edge(f"n{i}", "j")
    node(flow, "j", join=join)
    flow.compile()
    return flow


async def calls(flow: Flow, hf: Holdfast, given: dict[str, Any]) -> int:
    """How many Python calls a run takes: unlike its time, the same on a busy machine."""
    return (await counted(flow, hf, given))[0]


async def counted(flow: Flow, hf: Holdfast, given: dict[str, Any]) -> tuple[int, Any]:
    """The calls of a run, and its last state."""
    count = 0

    def on_event(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(on_event)
    try:
        result = await flow.run(given, on=hf)
    finally:
        sys.setprofile(None)
    return count, result.expect().state


def loop_among(nodes: int) -> Flow:
    """One node that goes round until `limit`, in a graph of so many: the others are bypassed at the end."""
    flow = Flow(f"among{nodes}", effect="pure")

    async def work(s: Any) -> dict[str, Any]:
        return {"n": s["n"] + 1}

    flow.node(id="step")(work)
    flow.start("step")
    flow.loop("step", "step", when="n < limit", max=1_000_000)
    rest = [node(flow, f"r{i}", {"bad": True}) for i in range(nodes - 1)]
    flow.edge("step", rest[0], when="n < 0")
    flow.chain(*rest)
    flow.compile()
    return flow


def line(nodes: int) -> Flow:
    flow = Flow(f"line{nodes}", effect="pure")

    async def work(s: Any) -> dict[str, Any]:
        return {"n": s["n"] + 1}

    flow.chain(*[flow.node(id=f"n{i}")(work) for i in range(nodes)])
    flow.compile()
    return flow


async def calls_of_a_step(flow: Flow, hf: Holdfast) -> float:
    """Between a shorter and a longer run, so that what a run costs once does not count."""
    await calls(flow, hf, {"n": 0, "limit": 5})
    short = await calls(flow, hf, {"n": 0, "limit": 50})
    return (await calls(flow, hf, {"n": 0, "limit": 250}) - short) / 200


@pytest.mark.covers("CORE-SPEED-09")
async def test_step_takes_as_many_calls_when_its_graph_has_ten_thousand_nodes(hf: Holdfast) -> None:
    small = await calls_of_a_step(loop_among(10), hf)
    assert small > 10
    assert await calls_of_a_step(loop_among(10_000), hf) <= 1.3 * small


async def test_steps_do_not_take_ever_more_calls_when_ten_thousand_nodes_run(hf: Holdfast) -> None:
    """Snapshots grow with the nodes that ran and come ever more rarely: about 1.4 times as many calls."""
    (await line(5).run({"n": 0}, on=hf)).expect()
    ten, more = [await calls(line(nodes), hf, {"n": 0}) for nodes in (10, 110)]
    many, state = await counted(line(10_000), hf, {"n": 0})
    assert state["n"] == 10_000
    early, average = (more - ten) / 100, (many - ten) / 9_990
    assert early > 10
    assert average <= 1.7 * early


@pytest.mark.covers("CORE-SPEED-09")
@pytest.mark.parametrize("join", ["all", quorum(900), any_of()], ids=["all", "quorum", "any"])
async def test_thousand_branches_cost_ten_times_hundred_when_they_join(hf: Holdfast, join: Any) -> None:
    narrow, wide = fan(100, join if join != quorum(900) else quorum(90)), fan(1000, join)
    small = await calls(narrow, hf, {"log": []})
    many, state = await counted(wide, hf, {"log": []})
    assert many < 13 * small
    assert len(state["log"]) == 1000 or join != "all"


async def test_skip_runs_through_ten_thousand_nodes_when_their_first_edge_is_dead(hf: Holdfast) -> None:
    flow = Flow("dead", effect="pure")
    node(flow, "a")
    names = [node(flow, f"n{i}", {"bad": True}) for i in range(10_000)]
    flow.edge("a", names[0], when="false")
    flow.chain(*names)
    add(flow, "end", {"good": True})
    flow.edge(names[-1], "end")
    flow.edge("a", "end")
    result = await flow.run({}, on=hf)
    assert result.expect().state == {"good": True}
