"""Values that are not in the state yet: results of sub-steps, items of maps. They stay what they are in
snapshots and forks, which write down where the run stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, Holdfast
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


async def snapshots(house: Holdfast, run: str) -> int:
    service = await house.service()
    row = await service.get(run)
    records = await service.store.read(row.id, first=0, last=row.head)
    return sum(record.kind == Kind.snapshot for record in records)


@pytest.mark.parametrize("value", VALUES)
async def test_result_of_a_sub_step_is_the_same_in_a_fork(house: Holdfast, value: Any) -> None:
    flow = asking(value)
    source = await flow.run({}, on=house)
    service = await house.service()
    fork = await service.fork(source.run_id, (await service.get(source.run_id)).head)
    result = await flow.resume(fork.id, on=house)
    await answer(house, result, "yes")
    assert (await flow.resume(fork.id, on=house)).expect().state["got"] == value


@pytest.mark.parametrize("value", VALUES)
async def test_result_of_a_sub_step_is_the_same_after_a_snapshot(house: Holdfast, value: Any) -> None:
    flow = asking(value, turns=210)
    result = await flow.run({}, on=house)
    assert await snapshots(house, result.run_id) > 0
    await answer(house, result, "yes")
    assert (await flow.resume(result.run_id, on=house)).expect().state["got"] == value


async def test_items_of_a_map_are_the_same_after_a_snapshot(house: Holdfast) -> None:
    body = Flow("item", effect="pure", types=[Receipt])
    add(body, "which")
    add(body, "quick", {"kind": "quick"})
    add(body, "look", lambda s: {"kind": type(s["item"]).__name__})
    body.hold("ask", prompt="This one?", options=["yes"])
    body.edge("ask", "look")
    body.router("which", lambda s: "quick" if s["item"].number < 110 else "ask", ["quick", "ask"])
    flow = Flow("items", effect="pure", types=[Receipt])
    flow.map("each", over="items", body=body, into="out", concurrency=1)
    result = await flow.run({"items": [Receipt(n) for n in range(112)]}, on=house)
    assert await snapshots(house, result.run_id) > 0
    for _ in range(2):
        await answer(house, result, "yes")
        result = await flow.resume(result.run_id, on=house)
    assert [one["kind"] for one in result.expect().state["out"][109:]] == ["quick", "Receipt", "Receipt"]
