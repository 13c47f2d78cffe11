"""Values that are not in the state yet: results of sub-steps, items of maps. They stay what they are in
snapshots and forks, which write down where the run stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.store.rows import RunFilter
from holdfast.testing.conformance.flows import add
from holdfast.types.record import Kind
from tests.flows.places import answer

pytestmark = [pytest.mark.anyio, pytest.mark.covers("D-27", "D-35")]

LARGE = "large " * 20_000


class Receipt(msgspec.Struct, frozen=True):
    number: int


@dataclass(frozen=True)
class Parcel:
    weight: int


VALUES = [pytest.param(LARGE, id="large"), Receipt(7), Parcel(3), {"deep": (Receipt(1), LARGE)}]


def asking(value: Any, turns: int = 0) -> Flow:
    """A sub-step with this value, then a question; and a loop beside it."""
    flow = Flow("asking", effect="pure", types=[Receipt, Parcel])
    add(flow, "begin", {"n": 0})
    add(flow, "turn", lambda s: {"n": s["n"] + 1})

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        got = await ctx.step("got", lambda: value, effect="pure")
        await ctx.ask("Go on?", options=["yes"])
        return {"got": got}

    flow.edge("begin", work)
    flow.edge("begin", "turn")
    flow.loop("turn", "turn", when=f"n < {turns}", max=1_000)
    return flow


async def snapshots(hf: Holdfast, run: str) -> int:
    service = await hf.service()
    row = await service.get(run)
    records = await service.store.read(row.id, first=0, last=row.head)
    return sum(record.kind == Kind.snapshot for record in records)


@pytest.mark.parametrize("value", VALUES)
async def test_result_of_a_sub_step_is_the_same_in_a_fork(hf: Holdfast, value: Any) -> None:
    flow = asking(value)
    source = await flow.run({}, on=hf)
    service = await hf.service()
    fork = await service.fork(source.run_id, (await service.get(source.run_id)).head)
    result = await flow.resume(fork.id, on=hf)
    await answer(hf, result, "yes")
    assert (await flow.resume(fork.id, on=hf)).expect().state["got"] == value


@pytest.mark.parametrize("value", VALUES)
async def test_result_of_a_sub_step_is_the_same_after_a_snapshot(hf: Holdfast, value: Any) -> None:
    flow = asking(value, turns=210)
    result = await flow.run({}, on=hf)
    assert await snapshots(hf, result.run_id) > 0
    await answer(hf, result, "yes")
    assert (await flow.resume(result.run_id, on=hf)).expect().state["got"] == value


async def test_items_of_a_map_are_the_same_after_a_snapshot(hf: Holdfast) -> None:
    body = Flow("item", effect="pure", types=[Receipt])
    add(body, "which")
    add(body, "quick", {"kind": "quick"})
    add(body, "look", lambda s: {"kind": type(s["item"]).__name__})
    body.hold("ask", prompt="This one?", options=["yes"])
    body.edge("ask", "look")
    body.router("which", lambda s: "quick" if s["item"].number < 110 else "ask", ["quick", "ask"])
    flow = Flow("items", effect="pure", types=[Receipt])
    flow.map("each", over="items", body=body, into="out", concurrency=1)
    result = await flow.run({"items": [Receipt(n) for n in range(112)]}, on=hf)
    assert await snapshots(hf, result.run_id) > 0
    for _ in range(2):
        await answer(hf, result, "yes")
        result = await flow.resume(result.run_id, on=hf)
    assert [one["kind"] for one in result.expect().state["out"][109:]] == ["quick", "Receipt", "Receipt"]


def stopping(name: str) -> Flow:
    """What is done with an item: a question, then a look at it."""
    body = Flow(name, effect="pure")
    body.hold("ask", prompt="This one?", options=["yes"])
    add(body, "look", lambda s: {"size": len(s["item"])})
    body.edge("ask", "look")
    return body


async def seen_through(hf: Holdfast, flow: Flow, given: Any) -> Any:
    """Every answer goes to a run that is loaded anew."""
    result = await flow.run(given, on=hf)
    while result.waiting:
        await answer(hf, result, "yes")
        result = await flow.resume(result.run_id, on=hf)
    return result.expect().state


@pytest.mark.covers("D-13")
@pytest.mark.parametrize("over", ["items", "deep.items", "made"])
async def test_map_goes_on_after_a_stop_when_its_list_is_large(hf: Holdfast, over: str) -> None:
    texts = [LARGE, LARGE + "!", LARGE]
    flow = Flow("large", effect="pure")
    flow.map("each", over=over, body=stopping("item"), into="out", concurrency=1)
    if over == "made":
        add(flow, "make", {"made": texts})
        add(flow, "between")
        flow.chain("make", "between", "each")
    state = await seen_through(hf, flow, {"items": texts, "deep": {"items": texts}})
    assert [one["size"] for one in state["out"]] == [len(text) for text in texts]


@pytest.mark.covers("D-13")
async def test_sub_flow_keeps_its_input_after_a_stop_when_that_is_a_part_of_a_large_value(
    hf: Holdfast,
) -> None:
    flow = Flow("parts", effect="pure")
    add(flow, "make", {"page": {"title": "short", "text": LARGE}})
    flow.subflow("sub", stopping("child"), inputs={"item": "page.title"}, outputs={"size": "state.size"})
    flow.edge("make", "sub")
    assert (await seen_through(hf, flow, {}))["size"] == len("short")


@pytest.mark.covers("D-13")
async def test_map_inside_a_sub_flow_goes_on_after_a_stop_when_its_list_is_large(hf: Holdfast) -> None:
    inner = Flow("inner", effect="pure")
    inner.map("each", over="texts", body=stopping("item"), into="out", concurrency=1)
    flow = Flow("outer", effect="pure")
    add(flow, "make", {"texts": [LARGE, LARGE]})
    flow.subflow("sub", inner, outputs={"out": "state.out"})
    flow.edge("make", "sub")
    assert len((await seen_through(hf, flow, {}))["out"]) == 2


@pytest.mark.covers("D-35")
async def test_fork_of_a_map_goes_on_when_its_list_is_large(hf: Holdfast) -> None:
    flow = Flow("forked", effect="pure")
    flow.map("each", over="items", body=stopping("item"), into="out", concurrency=1)
    source = await flow.run({"items": [LARGE, LARGE]}, on=hf)
    service = await hf.service()
    fork = await service.fork(source.run_id, (await service.get(source.run_id)).head)
    result = await flow.resume(fork.id, on=hf)
    for _ in range(2):
        await answer(hf, result, "yes")
        result = await flow.resume(fork.id, on=hf)
    assert [one["size"] for one in result.expect().state["out"]] == [len(LARGE)] * 2


@pytest.mark.covers("G-9", "D-27")
@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize(
    ("reducer", "first", "update", "expected"),
    [
        ("append", [LARGE], "x", [LARGE, "x", "x"]),
        ("concat", LARGE, "x", LARGE + "xx"),
        ("merge", {"a": LARGE}, {"b": 1}, {"a": LARGE, "b": 1}),
        ("max", LARGE, "a", LARGE),
        ("first", LARGE, "x", LARGE),
    ],
    ids=["append", "concat", "merge", "max", "first"],
)
async def test_reducer_adds_to_a_large_value_when_the_run_is_loaded_anew(
    hf: Holdfast, reducer: str, first: Any, update: Any, expected: Any, branches: bool
) -> None:
    flow = Flow("adding", effect="pure", reducers={"v": reducer})
    for name in ("begin", "end"):
        add(flow, name)
    for name in ("a", "b"):
        add(flow, name, {"v": update})
    flow.hold("ask", prompt="Go on?", options=["yes"])
    for way in [("begin", "a", "ask"), ("begin", "b", "ask")] if branches else [("begin", "a", "b", "ask")]:
        flow.chain(*way)
    flow.edge("ask", "end")
    state = await seen_through(hf, flow, {"v": first})
    assert state["v"] == expected
    (row,) = await (await hf.service()).list(RunFilter(flow="adding"))
    assert "adding" in await hf.postmortem(row.id)
