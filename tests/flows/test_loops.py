"""Declared loops: caps, what is left when they end, what happens to what runs beside them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, FlowInvalidError, Holdfast, any_of
from holdfast.testing.conformance.flows import add, trace
from holdfast.types.ids import RunId
from holdfast.types.record import Kind
from tests.deadlines import HANG
from tests.flows.conftest import node, visits_of

pytestmark = pytest.mark.anyio
LOG: dict[str, Any] = {"reducers": {"log": "append"}}


@pytest.mark.covers("G-17", "E8", "CORE-FLOW-15")
async def test_each_visit_has_a_record_of_its_own_when_a_node_runs_many_times(hf: Holdfast) -> None:
    flow = Flow("visits", effect="pure")
    add(flow, "up", lambda s: {"n": s["n"] + 1})
    flow.loop("up", "up", when="n < 4", max=5)
    result = await flow.run({"n": 0}, on=hf)
    assert result.expect().state["n"] == 4
    records = await (await hf.service()).store.read(RunId(result.run_id), first=0, last=None)
    assert [r.visit for r in records if r.node == "up" and r.kind == Kind.step] == [1, 2, 3, 4]


@pytest.mark.covers("G-17", "E7", "E21")
async def test_function_chooses_the_way_back_when_it_is_the_condition(hf: Holdfast) -> None:
    flow = Flow("by-code", effect="pure")
    add(flow, "a", lambda s: {"n": s["n"] + 1})
    node(flow, "b")
    node(flow, "end", {"done": True})
    flow.chain("a", "b", "end")
    flow.loop("b", "a", when=lambda s: s["n"] < 3, max=5)
    result = await flow.run({"n": 0}, on=hf)
    assert result.expect().state == {"n": 3, "done": True}


@pytest.mark.covers("G-17")
async def test_limit_is_an_error_of_its_own_when_the_loop_would_go_on(hf: Holdfast) -> None:
    flow = Flow("limit", effect="pure")
    node(flow, "a")
    node(flow, "b")
    flow.edge("a", "b")
    flow.loop("b", "a", when="true", max=2)
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "loop_limit"
    assert "begins at 'a' had 3 turns and would begin another" in result.error.message
    assert await visits_of(hf, result.run_id, "b") == 3


@pytest.mark.covers("G-23")
async def test_cycle_is_refused_when_it_is_not_declared(hf: Holdfast) -> None:
    flow = Flow("undeclared", effect="pure")
    node(flow, "a")
    node(flow, "b")
    flow.start("a")
    flow.edge("a", "b")
    flow.edge("b", "a")
    with pytest.raises(FlowInvalidError, match="cycle without a declared loop"):
        await flow.run({}, on=hf)


@pytest.mark.covers("G-17")
async def test_counter_goes_on_from_where_it_was_when_the_run_waits_inside_the_loop(hf: Holdfast) -> None:
    flow = Flow("counter", effect="pure")
    add(flow, "up", lambda s: {"n": s["n"] + 1})
    flow.hold("ask", prompt="once more?", options=["yes", "no"])
    flow.edge("up", "ask")
    flow.loop("ask", "up", when="decision == 'yes'", max=2)
    result = await flow.run({"n": 0}, on=hf)
    for _ in range(3):
        await (await hf.service()).answer(result.holds[0].id, "yes")
        result = await flow.resume(result.run_id, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "loop_limit"
    assert result.state["n"] == 3


@pytest.mark.covers("G-17")
async def test_loser_of_the_last_time_round_is_dropped_when_the_loop_goes_on(hf: Holdfast) -> None:
    flow = Flow("race", effect="pure", **LOG)
    stopped: list[int] = []
    add(flow, "top", lambda s: {"n": s["n"] + 1, "log": ["top"]})
    trace(flow, "quick")

    @flow.node
    async def slow(ctx: Context) -> dict[str, Any]:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append(ctx.visit)
            raise
        return {"log": ["slow"]}

    node(flow, "j", join=any_of())
    trace(flow, "end")
    flow.edge("top", "quick")
    flow.edge("top", slow)
    flow.edge("quick", "j")
    flow.edge(slow, "j")
    flow.loop("j", "top", when="n < 3", max=5)
    flow.edge("j", "end")
    node(flow, "stop", join=any_of(cancel_losers=True))
    flow.edge("end", "stop")
    flow.edge(slow, "stop")
    async with asyncio.timeout(HANG):
        result = await flow.run({"n": 0, "log": []}, on=hf)
    assert result.expect().state["log"] == ["top", "quick"] * 3 + ["end"]
    assert stopped == [1, 2, 3]


@pytest.mark.covers("G-17")
async def test_inner_counter_begins_anew_when_the_outer_loop_goes_round(hf: Holdfast) -> None:
    flow = Flow("inner", effect="pure")
    add(flow, "outer", lambda s: {"i": s["i"] + 1, "j": 0})
    add(flow, "inner", lambda s: {"j": s["j"] + 1, "all": s["all"] + 1})
    flow.edge("outer", "inner")
    flow.loop("inner", "inner", when="j < 3", max=2)
    flow.loop("inner", "outer", when="i < 4", max=3)
    node(flow, "end", {"done": True})
    flow.edge("inner", "end")
    result = await flow.run({"i": 0, "j": 0, "all": 0}, on=hf)
    assert result.expect().state == {"i": 4, "j": 3, "all": 12, "done": True}


@pytest.mark.covers("G-17")
async def test_exit_of_the_inner_loop_waits_for_the_outer_one_when_it_leaves_both(hf: Holdfast) -> None:
    flow = Flow("both", effect="pure", **LOG)
    add(flow, "outer", lambda s: {"i": s["i"] + 1, "j": 0})
    add(flow, "inner", lambda s: {"j": s["j"] + 1})
    node(flow, "check")
    trace(flow, "out", "end")
    flow.chain("outer", "inner", "check", "end")
    flow.edge("inner", "out")
    flow.loop("inner", "inner", when="j < 2", max=5)
    flow.loop("check", "outer", when="i < 3", max=5)
    result = await flow.run({"i": 0, "j": 0, "log": []}, on=hf)
    assert result.expect().state == {"i": 3, "j": 2, "log": ["out", "end"]}
    assert await visits_of(hf, result.run_id, "out") == 1


@pytest.mark.covers("G-17")
async def test_thousand_rounds_stay_cheap_when_the_loop_has_an_exit(hf: Holdfast) -> None:
    flow = Flow("long", effect="pure")
    add(flow, "up", lambda s: {"n": s["n"] + 1})
    node(flow, "end")
    flow.loop("up", "up", when="n < 1000", max=1000)
    flow.edge("up", "end")
    async with asyncio.timeout(HANG):
        result = await flow.run({"n": 0}, on=hf)
    assert result.expect().state["n"] == 1000


@pytest.mark.covers("G-17")
async def test_otherwise_is_taken_when_the_loop_goes_on_at_its_cap(hf: Holdfast) -> None:
    flow = Flow("passed", effect="pure")
    add(flow, "up", lambda s: {"n": s["n"] + 1})
    node(flow, "end", {"done": True})
    flow.loop("up", "up", when="n < 100", max=2, on_limit="continue")
    flow.edge("up", "end", otherwise=True)
    result = await flow.run({"n": 0}, on=hf)
    assert result.expect().state == {"n": 3, "done": True}
