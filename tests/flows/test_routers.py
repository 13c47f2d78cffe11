"""Who chooses the way on: expressions, functions, routers, branches."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.testing.conformance.flows import add, trace
from tests.flows.conftest import node

pytestmark = pytest.mark.anyio
LOG: dict[str, Any] = {"reducers": {"log": "append"}}


@pytest.mark.covers("CORE-FLOW-06")
@pytest.mark.parametrize(("n", "way"), [(9, ["big", "odd"]), (8, ["big"]), (1, ["odd"]), (2, ["none"])])
async def test_every_edge_that_holds_fires_when_there_are_several(
    hf: Holdfast, n: int, way: list[str]
) -> None:
    flow = Flow("when", effect="pure", **LOG)
    node(flow, "a")
    trace(flow, "big", "odd", "none")
    flow.edge("a", "big", when="n > 5")
    flow.edge("a", "odd", when=lambda s: s["n"] % 2 == 1)
    flow.edge("a", "none", otherwise=True)
    assert (await flow.run({"n": n, "log": []}, on=hf)).expect().state["log"] == way


@pytest.mark.covers("CORE-FLOW-06")
async def test_plain_edge_does_not_count_as_a_condition_when_otherwise_is_there(hf: Holdfast) -> None:
    flow = Flow("plain", effect="pure", **LOG)
    node(flow, "a")
    trace(flow, "always", "never", "else")
    flow.edge("a", "always")
    flow.edge("a", "never", when="false")
    flow.edge("a", "else", otherwise=True)
    assert (await flow.run({"log": []}, on=hf)).expect().state["log"] == ["always", "else"]


@pytest.mark.covers("D-26")
async def test_condition_sees_the_update_of_its_own_node_when_it_is_asked(hf: Holdfast) -> None:
    flow = Flow("after", effect="pure", **LOG)
    node(flow, "a", {"n": 7})
    trace(flow, "expr", "code")
    flow.edge("a", "expr", when="n == 7")
    flow.edge("a", "code", when=lambda s: s["n"] == 7)
    assert (await flow.run({"n": 0, "log": []}, on=hf)).expect().state["log"] == ["expr", "code"]


@pytest.mark.covers("CORE-FLOW-07", "G-16", "E7", "E21")
@pytest.mark.parametrize(
    ("chosen", "way"), [("b", ["b", "end"]), (["c", "b"], ["b", "c", "end"]), (None, [])]
)
async def test_router_names_what_follows_when_it_returns(hf: Holdfast, chosen: Any, way: list[str]) -> None:
    flow = Flow("router", effect="pure", **LOG)
    node(flow, "a")
    trace(flow, "b", "c", "end")

    async def choose(_s: Any) -> Any:
        return chosen

    flow.router("a", choose, ["b", "c"])
    flow.edge("b", "end")
    flow.edge("c", "end")
    assert (await flow.run({"log": []}, on=hf)).expect().state["log"] == way


@pytest.mark.covers("G-18", "E9")
@pytest.mark.parametrize(("key", "way"), [(True, ["yes", "end"]), (False, ["no", "end"])])
async def test_branch_runs_exactly_its_arm_when_the_key_is_known(
    hf: Holdfast, key: bool, way: list[str]
) -> None:
    flow = Flow("branch", effect="pure", **LOG)
    node(flow, "a")
    trace(flow, "yes", "no", "end")
    flow.branch("a", lambda s: s["key"], {True: "yes", False: "no"})
    flow.edge("yes", "end")
    flow.edge("no", "end")
    assert (await flow.run({"key": key, "log": []}, on=hf)).expect().state["log"] == way


@pytest.mark.covers("G-18")
async def test_unknown_key_fails_the_run_by_name_when_the_branch_has_no_arm(hf: Holdfast) -> None:
    flow = Flow("unknown", effect="pure")
    node(flow, "a")
    node(flow, "b")
    flow.branch("a", lambda _s: "nope", {"x": "b"})
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.error is not None
    assert (result.error.code, result.failed_node) == ("routing", "a")
    assert "'nope'" in result.error.message
    assert "'x'" in result.error.message


@pytest.mark.covers("D-26", "E2b", "G-37")
async def test_router_is_not_asked_again_when_the_run_is_loaded(hf: Holdfast) -> None:
    flow = Flow("once", effect="pure", **LOG)
    asked: list[int] = []
    node(flow, "a")
    trace(flow, "b", "c")
    flow.router("a", lambda _s: asked.append(1) or ("b" if len(asked) == 1 else "c"), ["b", "c"])
    flow.hold("ask", prompt="?", options=["yes"])
    flow.edge("b", "ask")
    flow.edge("c", "ask")
    result = await flow.run({"log": []}, on=hf)
    await (await hf.service()).answer(result.holds[0].id, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["log"] == ["b"]
    assert asked == [1]


@pytest.mark.covers("G-16")
@pytest.mark.parametrize("kind", ["hold", "timer", "map", "subflow"])
async def test_function_chooses_after_any_kind_of_node_when_it_is_on_its_edges(
    hf: Holdfast, kind: str
) -> None:
    flow = Flow("any-kind", effect="pure", **LOG)
    child = Flow("child", effect="pure")
    node(child, "c")

    async def body(item: int) -> int:
        return item

    match kind:
        case "hold":
            flow.hold("x", prompt="?", options=["yes"])
        case "timer":
            flow.timer("x", "1ms")
        case "map":
            flow.map("x", over="items", body=body, into="out")
        case _:
            flow.subflow("x", child)
    trace(flow, "taken", "not", "routed")
    flow.edge("x", "taken", when=lambda s: s["items"] == [1])
    flow.edge("x", "not", when=lambda s: s["items"] == [2])
    flow.router("x", lambda: "routed", ["routed"])
    result = await flow.run({"log": [], "items": [1]}, on=hf)
    if kind == "hold":
        await (await hf.service()).answer(result.holds[0].id, "yes")
        result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["log"] == ["taken", "routed"]


async def test_router_may_take_the_context_when_it_wants_it(hf: Holdfast) -> None:
    flow = Flow("ctx", effect="pure", **LOG)
    node(flow, "a")
    trace(flow, "b", "c")

    def choose(s: Any, ctx: Context) -> str:
        return "c" if ctx.node == "a" and s["n"] else "b"

    flow.router("a", choose, ["b", "c"])
    assert (await flow.run({"log": [], "n": 1}, on=hf)).expect().state["log"] == ["c"]


async def test_error_in_a_router_fails_its_node_when_it_raises(hf: Holdfast) -> None:
    flow = Flow("raise", effect="pure")
    node(flow, "a")
    node(flow, "b")
    flow.router("a", lambda: 1 / 0, ["b"])
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.failed_node == "a"
    assert result.error is not None
    assert result.error.type == "ZeroDivisionError"
    add(flow, "unused")
