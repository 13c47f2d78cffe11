"""Forms through the whole instance: declared, shown, filled in, bound to the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pydantic
import pytest

from holdfast import AnswerInvalidError, Context, Flow, FlowInvalidError
from holdfast.errors import FormInvalidError, ValueTooLargeError
from holdfast.model.fingerprint import encode_graph
from holdfast.types.status import HoldStatus
from tests.flows.places import Place, answer, kinds, open_holds

pytestmark = pytest.mark.anyio

SECTIONS: list[dict[str, Any]] = [
    {"type": "context", "title": "Customer", "content": "{{customer}} \u202e"},
    {"type": "input", "field": "amount", "kind": "currency", "currency": "EUR", "default": "{{amount}}",
     "extras": {"confidence": "{{confidence}}"}},
    {"type": "input", "field": "reason", "required_if": "decision == 'reject'"},
    {"type": "decision", "options": [{"id": "approve", "label": "Pay {{amount}}"}, "reject"]},
]  # fmt: skip
INPUT = {"customer": "{{amount}}", "amount": 100, "confidence": "87%"}


def refund(**hold: Any) -> Flow:
    flow = Flow("refund", effect="pure")

    @flow.node
    async def start() -> dict[str, Any]:
        return {}

    flow.hold("gate", **{"prompt": "Refund?", "sections": SECTIONS, "into": "refund", **hold})

    @flow.node
    async def paid(s: dict[str, Any]) -> dict[str, Any]:
        return {"paid": s["refund"]["amount"]}

    flow.edge(start, "gate")
    flow.edge("gate", paid)
    return flow


def form_of(hold: Any) -> dict[str, Any]:
    return msgspec.json.decode(hold.schema)["x-form"]


@pytest.mark.covers("FM-11", "TP-1", "TP-2", "TP-4", "FM-9")
async def test_form_is_stored_with_the_hold_as_it_was_when_it_opened(place: Place) -> None:
    flow = refund()
    hf = await place.hf()
    result = await flow.run(INPUT, on=hf)
    (hold,) = result.holds
    form = form_of(hold)
    assert form["sections"][0]["content"] == "{{amount}} \\u202e"
    assert form["sections"][1]["default"] == 100
    assert form["sections"][1]["confidence"] == 0.87
    assert hold.options is not None
    assert [(o.id, o.label) for o in hold.options] == [("approve", "Pay 100"), ("reject", "reject")]
    SECTIONS[0]["title"] = "Changed"
    try:
        assert form_of((await open_holds(hf, result))[0]) == form
    finally:
        SECTIONS[0]["title"] = "Customer"


@pytest.mark.covers("RS-4", "FM-8", "FM-10", "HOLD-FORM-06")
async def test_values_of_a_form_are_typed_and_bound_with_the_hash_of_what_was_shown(place: Place) -> None:
    flow = refund()
    hf = await place.hf()
    result = await flow.run(INPUT, on=hf)
    (hold,) = result.holds
    await answer(hf, result, "approve", data={"amount": 99.5})
    done = await flow.resume(result.run_id, on=hf)
    assert done.state["paid"] == "99.5"
    said = done.state["decision_result"]
    assert said["response_data"] == {"amount": "99.5", "reason": None, "decision": "approve"}
    assert said["edited_fields"] == [{"field": "amount", "original": "100", "final": "99.5"}]
    assert said["request_hash"] == hold.request_hash


@pytest.mark.covers("HOLD-FORM-06")
async def test_two_forms_that_show_something_else_have_different_hashes(place: Place) -> None:
    hf = await place.hf()
    flow = refund()
    one = await flow.run(INPUT, on=hf)
    two = await flow.run({**INPUT, "amount": 101}, on=hf)
    same = await flow.run(INPUT, on=hf)
    hashes = [each.holds[0].request_hash for each in (one, two, same)]
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.mark.covers("RS-4", "HOLD-FORM-01", "FM-7")
async def test_wrong_answer_consumes_nothing_and_names_every_field(place: Place) -> None:
    flow = refund()
    hf = await place.hf()
    result = await flow.run(INPUT, on=hf)
    before = await kinds(hf, result)
    with pytest.raises(FormInvalidError) as caught:
        await answer(hf, result, "reject", data={"amount": "many", "extra": 1})
    assert caught.value.status == 422
    assert caught.value.facts["errors"] == [
        {"field": "amount", "code": "format", "message": "is not an amount of money"},
        {"field": "reason", "code": "required", "message": "is missing"},
        {"field": "extra", "code": "unknown", "message": "is not a field of this form"},
    ]
    with pytest.raises(ValueTooLargeError, match="a comment of 10,001 bytes"):
        await answer(hf, result, "approve", comment="x" * 10_001)
    with pytest.raises(AnswerInvalidError, match="is not one of the answers"):
        await answer(hf, result, "Approve", data={})
    assert [hold.status for hold in await open_holds(hf, result)] == [HoldStatus.pending]
    assert await kinds(hf, result) == before


@pytest.mark.covers("FM-5")
async def test_form_without_a_decision_has_one_way_to_submit(place: Place) -> None:
    flow = refund(sections=[{"type": "input", "field": "amount", "kind": "integer"}])
    hf = await place.hf()
    result = await flow.run(on=hf)
    (hold,) = result.holds
    assert [option.id for option in hold.options or ()] == ["submit"]
    await answer(hf, result, "submit", data={"amount": 5})
    assert (await flow.resume(result.run_id, on=hf)).state["paid"] == 5


@pytest.mark.covers("FM-6", "RS-4")
@pytest.mark.parametrize("sections", [None, []])
async def test_hold_without_sections_takes_any_object(place: Place, sections: Any) -> None:
    flow = refund(sections=sections, options=["approve"])
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.holds[0].schema is None
    await answer(hf, result, "approve", data={"amount": 500, "more": [1]})
    assert (await flow.resume(result.run_id, on=hf)).state["refund"] == {"amount": 500, "more": [1]}


@pytest.mark.covers("FM-11")
def test_graph_without_a_form_is_written_as_it_always_was() -> None:
    flow = Flow("plain", effect="pure")
    flow.hold("gate", prompt="?", options=["a"])
    written = encode_graph(flow.compile().graph.spec)
    assert b'"form"' not in written
    assert b'"into"' not in written


@pytest.mark.covers("FM-1", "FM-4")
@pytest.mark.parametrize(
    ("hold", "part"),
    [
        ({"sections": [SECTIONS[0], {"type": "picture"}]}, "sections[1].type: 'picture' is not one of"),
        ({"options": ["a"]}, "it has options and a decision section"),
        ({"form": {"type": "string"}, "sections": None}, "no form can be made of"),
        ({"schema": {"type": "object"}}, "it has both a form and a schema"),
        ({"into": "not a name"}, "cannot be a field"),
    ],
)
async def test_flow_is_refused_when_a_form_makes_no_sense(hold: Any, part: str) -> None:
    with pytest.raises(FlowInvalidError) as caught:
        refund(**hold).compile()
    assert part in str(caught.value)


class Struct(msgspec.Struct, frozen=True):
    amount: int
    size: Literal["s", "l"]
    note: str = ""
    extra: str | None = None


@dataclass(frozen=True)
class Data:
    amount: int
    size: Literal["s", "l"]
    note: str = ""
    extra: str | None = None


class Model(pydantic.BaseModel):
    amount: int = pydantic.Field(ge=1)
    size: Literal["s", "l"]
    note: str = ""
    extra: str | None = None


def asking(form: Any, seen: list[Any], **more: Any) -> Flow:
    flow = Flow("asking")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("How much?", form=form, **more)
        seen.append(reply)
        return {"done": True}

    return flow


@pytest.mark.covers("HOLD-FORM-05", "HOLD-FORM-04")
@pytest.mark.parametrize("kind", [Struct, Data, Model])
async def test_handler_gets_an_instance_when_it_asks_with_a_type(place: Place, kind: Any) -> None:
    seen: list[Any] = []
    flow = asking(kind, seen)
    hf = await place.hf()
    result = await flow.run(on=hf)
    with pytest.raises(FormInvalidError) as caught:
        await answer(hf, result, "submit", data={"amount": "5", "note": 1})
    assert [each["field"] for each in caught.value.facts["errors"]] == ["amount", "size", "note"]
    await answer(hf, result, "submit", data={"amount": 5, "size": "l"})
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert seen == [kind(amount=5, size="l")]


@pytest.mark.covers("HOLD-FORM-05")
async def test_reply_serves_the_instance_when_there_is_something_to_choose(place: Place) -> None:
    seen: list[Any] = []
    flow = asking(Struct, seen, options=["pay", "deny"])
    hf = await place.hf()
    result = await flow.run(on=hf)
    await answer(hf, result, "pay", data={"amount": 5, "size": "s", "note": "x"})
    await flow.resume(result.run_id, on=hf)
    assert (seen[0].decision, seen[0].data) == ("pay", Struct(5, "s", "x"))


@pytest.mark.covers("TP-4", "FM-5")
async def test_texts_of_a_form_in_a_handler_are_texts_whatever_they_contain(place: Place) -> None:
    seen: list[Any] = []
    section = {"type": "context", "content": "{{a b}}"}
    flow = asking([section, {"type": "decision", "options": ["go"]}], seen)
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert form_of(result.holds[0])["sections"][0]["content"] == "{{a b}}"
    await answer(hf, result, "go")
    await flow.resume(result.run_id, on=hf)
    assert seen[0].decision == "go"


@pytest.mark.parametrize("form", [int, [{"type": "picture"}], "text"])
@pytest.mark.covers("FM-1")
async def test_question_is_never_asked_when_its_form_makes_no_sense(place: Place, form: Any) -> None:
    hf = await place.hf()
    result = await asking(form, []).run(on=hf)
    assert result.error is not None
    assert "form of ctx.ask in node 'work'" in result.error.message
    assert "hold.opened" not in await kinds(hf, result)


class Typed(msgspec.Struct):
    refund: Struct | None = None


@pytest.mark.covers("HOLD-FORM-05")
async def test_state_gets_an_instance_when_its_field_has_the_forms_type(place: Place) -> None:
    flow = Flow("typed", state=Typed, effect="pure")
    flow.hold("gate", prompt="Refund?", form=Struct, into="refund")
    hf = await place.hf()
    result = await flow.run(on=hf)
    await answer(hf, result, "submit", data={"amount": 5, "size": "s"})
    done = await flow.resume(result.run_id, on=hf)
    assert done.state.refund == Struct(5, "s")
