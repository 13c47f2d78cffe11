"""What no handler returned meets the state as an update does: by the field's reducer, held to its type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from holdfast import Flow, Holdfast, append, reducer, sum_
from holdfast.errors import AnswerInvalidError
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.flows import add
from tests.flows.conftest import node
from tests.flows.places import answer, open_holds

pytestmark = pytest.mark.anyio


@reducer
def union(old: list[int], new: list[int]) -> list[int]:
    return sorted({*old, *new})


@dataclass
class Gathered:
    n: int = 0
    log: Annotated[list[int], append] = field(default_factory=list[int])
    total: Annotated[int, sum_] = 0
    seen: Annotated[list[int], union] = field(default_factory=list[int])
    decision: Annotated[list[str], append] = field(default_factory=list[str])


def counting() -> Flow:
    child = Flow("counting", effect="pure")
    add(child, "count", lambda s: {"one": s["n"], "many": [s["n"], 0]})
    return child


@pytest.mark.covers("G-9", "D-26")
async def test_sub_flow_adds_to_a_field_with_a_reducer_when_it_is_entered_again(hf: Holdfast) -> None:
    flow = Flow("again", Gathered, effect="pure")
    add(flow, "up", lambda s: {"n": s.n + 1})
    flow.subflow(
        "sub",
        counting(),
        inputs={"n": "n"},
        outputs={"log": "state.many", "total": "state.one", "seen": "state.many"},
    )
    flow.edge("up", "sub")
    flow.loop("sub", "up", when="n < 3", max=5)
    state = (await flow.run({}, on=hf)).expect().state
    assert (state.log, state.total, state.seen) == ([1, 0, 2, 0, 3, 0], 6, [0, 1, 2, 3])


@pytest.mark.covers("G-9", "D-24")
async def test_maps_of_parallel_branches_add_up_when_their_field_has_a_reducer(hf: Holdfast) -> None:
    flow = Flow("both", effect="pure", reducers={"out": "append"})
    node(flow, "a", {"left": [1, 2], "right": [3]})
    flow.map("l", over="left", body=lambda item: item, into="out")
    flow.map("r", over="right", body=lambda item: item, into="out")
    node(flow, "j")
    for way in (("a", "l", "j"), ("a", "r", "j")):
        flow.chain(*way)
    result = await flow.run({"out": [0]}, on=hf)
    assert result.expect().state["out"] == [0, 1, 2, 3]


@pytest.mark.covers("G-9")
async def test_result_of_a_map_fails_its_node_when_the_reducer_cannot_take_it(hf: Holdfast) -> None:
    flow = Flow("sum", effect="pure", reducers={"out": "sum"})
    node(flow, "a", {"items": [1]})
    flow.map("m", over="items", body=lambda item: item, into="out")
    flow.edge("a", "m")
    result = await flow.run({"out": 0}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "state_mismatch"
    assert "'sum' cannot combine" in result.error.message


@pytest.mark.covers("G-9")
async def test_decisions_are_gathered_when_the_field_has_a_reducer(hf: Holdfast) -> None:
    flow = Flow("gather", Gathered, effect="pure")
    flow.hold("one", prompt="First?", options=["yes", "no"])
    flow.hold("two", prompt="Second?", options=["yes", "no"])
    flow.edge("one", "two")
    result = await flow.run({}, on=hf)
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=hf)
    await answer(hf, result, "no")
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state.decision == ["yes", "no"]


@pytest.mark.covers("G-9")
async def test_gathered_decisions_stay_when_a_hold_expires_into_a_branch() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        flow = Flow("late", Gathered, effect="pure")
        flow.hold("one", prompt="First?", options=["yes", "no"])
        flow.hold("two", prompt="Second?", options=["yes", "no"], timeout="1h", on_timeout="branch:late")
        node(flow, "late", {"n": 9})
        flow.edge("one", "two")
        result = await flow.run({}, on=hf)
        await answer(hf, result, "yes")
        result = await flow.resume(result.run_id, on=hf)
        clock.advance(hours=2)
        await (await hf.open()).fire_timers(limit=10)
        result = await flow.resume(result.run_id, on=hf)
        assert (result.expect().state.decision, result.state.n) == (["yes"], 9)
        assert (await hf.replay(result.run_id)).same


def doubtful() -> Flow:
    flow = Flow("doubtful", Gathered, effect="pure")

    @flow.node(effect="write")
    async def pay() -> dict[str, Any]:
        raise OSError("the line is dead")

    return flow


@pytest.mark.covers("D-15", "CORE-BAD-07")
@pytest.mark.parametrize("data", ["paid", 5, [1], {"update": 5}, {"update": [1]}, {"updates": {"n": 1}}])
async def test_doubt_stays_open_when_the_answer_has_another_form(hf: Holdfast, data: Any) -> None:
    flow = doubtful()
    result = await flow.run({}, on=hf)
    with pytest.raises(AnswerInvalidError, match="does not fit the hold"):
        await answer(hf, result, "happened", data=data)
    (hold,) = await open_holds(hf, result.run_id)
    await answer(hf, result, "happened", data={"update": {"n": 4}})
    assert (await flow.resume(result.run_id, on=hf)).expect().state.n == 4
    assert hold.schema is not None


@pytest.mark.covers("D-15")
async def test_update_of_an_effect_in_doubt_goes_through_the_reducer_when_it_happened(
    hf: Holdfast,
) -> None:
    flow = doubtful()
    result = await flow.run({"log": [1], "total": 5}, on=hf)
    await answer(hf, result, "happened", data={"update": {"log": [2], "total": 2}})
    state = (await flow.resume(result.run_id, on=hf)).expect().state
    assert (state.log, state.total) == ([1, 2], 7)


@pytest.mark.covers("D-15")
@pytest.mark.parametrize("update", [{"n": "four"}, {"nosuch": 1}, {"total": [1]}])
async def test_update_of_an_effect_in_doubt_fails_its_node_when_it_does_not_fit_the_state(
    hf: Holdfast, update: dict[str, Any]
) -> None:
    flow = doubtful()
    result = await flow.run({}, on=hf)
    await answer(hf, result, "happened", data={"update": update})
    result = await flow.resume(result.run_id, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "state_mismatch"
