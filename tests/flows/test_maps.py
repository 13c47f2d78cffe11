"""Fan-out over a list that is known only at run time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Retry
from holdfast.testing.conformance.flows import add
from tests.deadlines import HANG
from tests.flows.conftest import node

pytestmark = pytest.mark.anyio


@pytest.mark.covers("CORE-FLOW-13")
async def test_results_are_in_the_order_of_the_items_when_they_end_in_another(hf: Holdfast) -> None:
    flow = Flow("order", effect="pure")
    ended: list[int] = []
    turns = [asyncio.Event() for _ in range(3)]
    turns[-1].set()

    async def body(item: int) -> int:
        await turns[item].wait()
        ended.append(item)
        if item:
            turns[item - 1].set()
        return item * 10

    flow.map("each", over="items", body=body, into="out")
    result = await flow.run({"items": [0, 1, 2]}, on=hf)
    assert result.expect().state["out"] == [0, 10, 20]
    assert ended == [2, 1, 0]


@pytest.mark.covers("CORE-FLOW-14")
@pytest.mark.parametrize("bound", [1, 3])
async def test_no_more_items_run_at_once_than_allowed_when_there_are_many(hf: Holdfast, bound: int) -> None:
    flow = Flow("bound", effect="pure")
    running = peak = 0
    full = asyncio.Event()

    async def body(item: int) -> int:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        if running == bound:
            full.set()
        await full.wait()
        await asyncio.sleep(0.001)
        running -= 1
        return item

    flow.map("each", over="items", body=body, into="out", concurrency=bound)
    result = await flow.run({"items": list(range(12))}, on=hf)
    assert result.expect().state["out"] == list(range(12))
    assert peak == bound


async def test_item_may_be_any_value_when_the_list_holds_dicts_and_none(hf: Holdfast) -> None:
    flow = Flow("values", effect="pure")

    async def body(item: Any) -> Any:
        return [item]

    flow.map("each", over="items", body=body, into="out")
    items = [{"a": 1}, None, [2], "x", {"item": 5}]
    result = await flow.run({"items": items}, on=hf)
    assert result.expect().state["out"] == [[item] for item in items]


@pytest.mark.covers("G-27", "G-36")
async def test_only_the_failed_item_runs_again_when_the_run_is_resumed(hf: Holdfast) -> None:
    flow = Flow("fail", effect="pure")
    calls: list[int] = []

    async def body(item: int) -> int:
        calls.append(item)
        if item == 1 and calls.count(1) == 1:
            await asyncio.sleep(0.005)
            raise ValueError("once")
        return item

    flow.map("each", over="items", body=body, into="out")
    node(flow, "end", {"done": True})
    flow.edge("each", "end")
    result = await flow.run({"items": [0, 1, 2]}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.message == "once"
    assert "done" not in result.state
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["out"] == [0, 1, 2]
    assert calls == [0, 1, 2, 1]


async def test_item_is_tried_again_when_it_has_a_retry_policy(hf: Holdfast) -> None:
    flow = Flow("retry", effect="pure")

    async def body(item: int, ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ValueError(item)
        return ctx.attempt

    flow.map("each", over="items", body=body, into="out", retry=Retry(3, delay=0))
    result = await flow.run({"items": [0, 1]}, on=hf)
    assert result.expect().state["out"] == [3, 3]


async def test_failures_stand_in_the_results_when_they_are_collected(hf: Holdfast) -> None:
    flow = Flow("collect", effect="pure")

    async def body(item: int) -> int:
        if item % 2:
            raise ValueError(f"odd {item}")
        return item

    flow.map("each", over="items", body=body, into="out", on_item_failure="collect", concurrency=2)
    result = await flow.run({"items": [0, 1, 2, 3, 4]}, on=hf)
    out = result.expect().state["out"]
    assert [o if isinstance(o, int) else o["failed"] for o in out] == [0, "odd 1", 2, "odd 3", 4]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"items": {"a": 1}}, "map node 'each': 'items' is FrozenDict"),
        ({"items": None}, "map node 'each': 'items' is nothing"),
        ({"items": 3}, "map node 'each': 'items' is int"),
        ({}, "node 'each': its input cannot be read: 'items' has no value"),
    ],
)
async def test_map_fails_by_name_when_it_goes_over_no_list(
    hf: Holdfast, given: dict[str, Any], problem: str
) -> None:
    flow = Flow("no-list", effect="pure")

    async def body(item: int) -> int:
        return item

    flow.map("each", over="items", body=body, into="out", on_failure="abort")
    result = await flow.run(given, on=hf)
    assert result.failed
    assert result.error is not None
    assert problem in result.error.message
    assert result.failed_node == "each"


async def test_map_over_no_list_is_routed_when_it_says_where_to(hf: Holdfast) -> None:
    flow = Flow("no-list-route", effect="pure")

    async def body(item: int) -> int:
        return item

    flow.map("each", over="items", body=body, into="out", on_failure="route:mend")
    node(flow, "mend", {"out": []})
    assert (await flow.run({"items": 3}, on=hf)).expect().state["out"] == []


@pytest.mark.covers("CORE-FLOW-13")
async def test_each_item_runs_a_whole_flow_when_the_body_is_one(hf: Holdfast) -> None:
    row = Flow("row", effect="pure")
    add(row, "one", lambda s: {"x": s["x"] + 1})
    add(row, "two", lambda s: {"x": s["x"] * 10})
    row.edge("one", "two")
    flow = Flow("rows", effect="pure")
    flow.map("each", over="rows", body=row, into="out", concurrency=2)
    result = await flow.run({"rows": [{"x": 1}, {"x": 2}, {"x": 3}]}, on=hf)
    assert [r["x"] for r in result.expect().state["out"]] == [20, 30, 40]


@pytest.mark.covers("G-45", "E22")
async def test_items_wait_for_their_own_answers_when_the_body_asks(hf: Holdfast) -> None:
    row = Flow("row", effect="pure")
    row.hold("ask", prompt="keep {{name}}?", options=["yes", "no"])
    flow = Flow("rows", effect="pure")
    flow.map("each", over="rows", body=row, into="out")
    result = await flow.run({"rows": [{"name": "a"}, {"name": "b"}]}, on=hf)
    assert sorted(hold.prompt for hold in result.holds) == ["keep a?", "keep b?"]
    said = {"keep a?": "yes", "keep b?": "no"}
    for hold in result.holds:
        await (await hf.service()).answer(hold.id, said[hold.prompt])
        result = await flow.resume(result.run_id, on=hf)
    assert [r["decision"] for r in result.expect().state["out"]] == ["yes", "no"]


async def test_map_in_a_loop_goes_over_the_new_list_when_it_is_entered_again(hf: Holdfast) -> None:
    flow = Flow("loop", effect="pure")

    async def body(item: int) -> int:
        return item + 1

    flow.map("each", over="xs", body=body, into="xs")
    add(flow, "check", lambda s: {"n": s["n"] + 1})
    flow.edge("each", "check")
    flow.loop("check", "each", when="n < 3", max=5)
    result = await flow.run({"xs": [1, 2], "n": 0}, on=hf)
    assert result.expect().state["xs"] == [4, 5]


async def test_thousand_items_are_not_quadratic_when_they_run_at_once(hf: Holdfast) -> None:
    flow = Flow("many", effect="pure")

    async def body(item: int) -> int:
        return item

    flow.map("each", over="items", body=body, into="out")
    async with asyncio.timeout(HANG):
        result = await flow.run({"items": list(range(1000))}, on=hf)
    assert result.expect().state["out"] == list(range(1000))


@pytest.mark.covers("G-45")
async def test_question_of_a_failed_item_is_closed_when_failures_are_collected(hf: Holdfast) -> None:
    row = Flow("row", effect="pure")
    row.hold("ask", prompt="keep {{x}}?", options=["yes"], timeout="1h")
    add(row, "check", lambda s: {"y": 1 / s["x"]})
    row.start("ask", "check")
    flow = Flow("rows", effect="pure")
    flow.map("each", over="rows", body=row, into="out", on_item_failure="collect")
    result = await flow.run({"rows": [{"x": 0}, {"x": 1}]}, on=hf)
    assert [hold.prompt for hold in result.holds] == ["keep 1?"]
    await (await hf.service()).answer(result.holds[0].id, "yes")
    result = await flow.resume(result.run_id, on=hf)
    out = result.expect().state["out"]
    assert out[0]["type"] == "ZeroDivisionError"
    assert out[1]["decision"] == "yes"


@pytest.mark.parametrize("kind", ["map", "sub-flow"])
@pytest.mark.covers("G-35", "G-36")
async def test_child_that_completes_while_its_run_fails_is_not_run_again_when_it_is_resumed(
    hf: Holdfast, kind: str
) -> None:
    failed, done = asyncio.Event(), list[str]()

    async def fail() -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("once")

    async def work(item: str) -> str:
        if item == "fails":
            await fail()
        else:
            # Its record comes behind that of the failure.
            await asyncio.wait_for(failed.wait(), HANG)
            await asyncio.sleep(0)
        done.append(item)
        return item

    flow = Flow("beside", effect="read")
    if kind == "map":
        flow.map("each", over="items", body=work, into="out")
    else:
        child = Flow("child", effect="read")

        @child.node
        async def slow() -> None:
            await work("slow")

        begin = flow.node(id="begin")(lambda: None)
        flow.edge(begin, flow.subflow("each", child))
        flow.edge(begin, flow.node(id="other")(fail))
    result = await flow.run({"items": ["fails", "slow", "slower"]}, on=hf)
    assert result.failed
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert sorted(done) == (["fails", "slow", "slower"] if kind == "map" else ["slow"])
