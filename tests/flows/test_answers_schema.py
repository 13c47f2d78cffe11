"""Data of an answer is held against the schema of its hold before anything is written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import AnswerInvalidError, Context, Flow, FlowInvalidError, RunStatus
from holdfast.types.clock import micros
from holdfast.types.duration import parse_duration
from holdfast.types.record import Kind
from holdfast.types.status import HoldStatus
from tests.flows.places import Place, answer, kinds, open_holds

pytestmark = pytest.mark.anyio

AMOUNT = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "minimum": 1}, "note": {"type": "string"}},
    "required": ["amount"],
    "additionalProperties": False,
}


def refund(schema: Any = AMOUNT) -> Flow:
    flow = Flow("refund", effect="pure")
    flow.hold("gate", prompt="How much?", options=["pay", "deny"], timeout="2h", schema=schema)

    @flow.node
    async def paid(s: dict[str, Any]) -> dict[str, Any]:
        return {"paid": s["decision_result"]["response_data"]["amount"]}

    @flow.node
    async def denied() -> dict[str, Any]:
        return {"paid": 0}

    flow.edge("gate", paid, when="decision == 'pay'")
    flow.edge("gate", denied, when="decision == 'deny'")
    return flow


WRONG: dict[str, tuple[Any, list[str]]] = {
    "none": (None, ["data: null is not an object"]),
    "another type": ([5], ["data: a list is not an object"]),
    "two things at once": (
        {"amount": 0, "notes": "x"},
        ["data.amount: 0 is not at least 1", "data.notes: is not an allowed field"],
    ),
    "a type of the caller's": (("amount", 5), ["data: a list is not an object"]),
    "no number": ({"amount": float("nan")}, ["data: JSON has no NaN and no infinity"]),
}


@pytest.mark.covers("G-41")
@pytest.mark.parametrize("what", list(WRONG))
async def test_hold_stays_pending_and_nothing_is_written_when_data_does_not_fit(
    place: Place, what: str
) -> None:
    given, problems = WRONG[what]
    flow = refund()
    hf = await place.hf()
    result = await flow.run(on=hf)
    (hold,) = result.holds
    before = await kinds(hf, result)
    with pytest.raises(AnswerInvalidError) as caught:
        await answer(hf, result, "pay", data=given)
    assert caught.value.facts["problems"] == problems
    assert all(problem in str(caught.value) for problem in problems)
    assert await open_holds(hf, result) == [hold]
    assert await kinds(hf, result) == before
    result = await flow.resume(result.run_id, on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, result, "pay", data={"amount": 5})
    assert (await flow.resume(result.run_id, on=hf)).state["paid"] == 5


@pytest.mark.covers("G-41")
async def test_question_is_stored_whole_and_its_answer_is_output_and_route(place: Place) -> None:
    flow = refund()
    hf = await place.hf()
    asked_at = place.clock.now()
    result = await flow.run(on=hf)
    (hold,) = await open_holds(await place.hf(), result)
    service = await hf.service()
    (record,) = [r for r in await service.store.read(result.run_id) if r.kind == Kind.asked]
    assert (hold.seq, hold.node, hold.prompt) == (record.seq, "gate", "How much?")
    assert hold.schema is not None
    assert msgspec.json.decode(hold.schema) == AMOUNT
    assert hold.expires_at == asked_at + micros(parse_duration("2h"))

    resumed = await flow.resume(result.run_id, on=hf)
    assert resumed.status is RunStatus.pending_input
    await answer(hf, result, "pay", data={"amount": 7}, by="user:ada")
    result = await flow.resume(result.run_id, on=await place.hf())
    ran = (await service.latest(result.run_id)).node_results
    said = ran["gate"].output
    assert (said["decision"], said["decision_result"]["response_data"]) == ("pay", {"amount": 7})
    assert result.state["paid"] == 7
    assert set(ran) == {"gate", "paid"}


class Line(msgspec.Struct):
    amount: int


class Order(msgspec.Struct):
    lines: list[Line]
    note: str = ""


async def test_data_is_checked_in_depth_when_the_schema_comes_from_a_type(place: Place) -> None:
    flow = Flow("order", effect="pure")
    flow.hold("gate", prompt="What?", options=["go"], schema=Order)
    hf = await place.hf()
    result = await flow.run(on=hf)
    with pytest.raises(AnswerInvalidError) as caught:
        await answer(hf, result, "go", data={"lines": [{"amount": 1}, {"amount": "2"}]})
    assert caught.value.facts["problems"] == ["data.lines[1].amount: '2' is not an integer"]
    await answer(hf, result, "go", data=Order([Line(1), Line(2)]))
    assert (await flow.resume(result.run_id, on=hf)).completed


class Tree(msgspec.Struct):
    inside: list[Tree]


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"type": "text"}, "schema.type: 'text'"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {}}}, "references are not followed"),
        ({"properties": {"a": {"minimum": "1"}, "b": 5}}, "schema.properties.b: 5"),
        (Tree, "Tree contains itself"),
    ],
)
async def test_flow_is_refused_when_the_schema_of_a_hold_makes_no_sense(schema: Any, part: str) -> None:
    with pytest.raises(FlowInvalidError) as caught:
        refund(schema).compile()
    assert part in str(caught.value)
    assert "hold-schema" in {problem.rule for problem in caught.value.facts["problems"]}


def asking(schema: Any) -> Flow:
    flow = Flow("asking")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("How much?", schema=schema)
        return {"data": reply.data}

    return flow


async def test_question_in_a_node_gets_only_data_that_fits(place: Place) -> None:
    flow = asking(AMOUNT)
    hf = await place.hf()
    result = await flow.run(on=hf)
    with pytest.raises(AnswerInvalidError):
        await answer(hf, result, "so much", data={"amount": "5"})
    with pytest.raises(AnswerInvalidError):
        await (await hf.service()).say(result.run_id, "five")
    assert [hold.status for hold in await open_holds(hf, result)] == [HoldStatus.pending]
    await answer(hf, result, "so much", data={"amount": 5})
    assert (await flow.resume(result.run_id, on=hf)).state == {"data": {"amount": 5}}


@pytest.mark.parametrize("schema", [{"type": "text"}, {"$ref": "#"}, "text", {"enum": [object()]}])
async def test_question_in_a_node_is_never_asked_when_its_schema_makes_no_sense(
    place: Place, schema: Any
) -> None:
    hf = await place.hf()
    result = await asking(schema).run(on=hf)
    assert result.failed
    assert result.error is not None
    assert "schema of ctx.ask in node 'work'" in result.error.message
    assert "hold.opened" not in await kinds(hf, result)
