"""What a question shows: filled in once, within limits, and honest about what it lacks."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, FlowInvalidError, Holdfast
from holdfast.errors import FormInvalidError, InputError, ValueTooLargeError
from holdfast.holds.actions.submission import MAX_DATA, MAX_DEPTH
from holdfast.model.hold_text import MAX_SHOWN
from holdfast.types.status import RunStatus
from tests.holds.actions.scene import DANA, Scene, data

pytestmark = pytest.mark.anyio

DECIDE = {"type": "decision", "options": ["approve", "reject"]}


async def runs(hf: Holdfast, given: dict[str, Any], **asked: Any) -> Any:
    flow = Flow("asking", effect="pure")
    flow.hold("gate", **{"prompt": "Pay?", "assignee": "user:dana@acme", **asked})
    return await flow.run(given, on=hf)


@pytest.mark.covers("TP-3", "TP-1", "HI-1")
async def test_missing_variable_is_empty_and_in_the_history_with_its_place(scene: Scene) -> None:
    sections = [{"type": "context", "title": "Note", "content": "{{nobody.note}}"}, DECIDE]
    result = await runs(
        scene.hf,
        {"amount": 250},
        prompt="Pay {{amount}} to {{customer.name}}?",
        context={"lines": ["{{amount}}", "for {{customer.name}}"]},
        sections=sections,
    )
    row = await scene.row(result.holds[0].id)
    assert row.prompt == "Pay 250 to ?"
    assert msgspec.json.decode(row.context) == {"lines": [250, "for "]}
    expected = [
        "prompt: {{customer.name}} has no value",
        "context.lines[1]: {{customer.name}} has no value",
        "sections[0].content: {{nobody.note}} has no value",
    ]
    assert list(row.terms.warnings) == expected
    (entry,) = await scene.audit(row, "warned")
    assert data(entry)["missing"] == expected
    lines = [each for each in await scene.holds.history(DANA, row.id) if each.action == "warned"]
    assert [each.data["missing"] for each in lines] == [expected]


@pytest.mark.covers("TP-3")
async def test_hold_warns_of_nothing_when_all_has_a_value(scene: Scene) -> None:
    result = await runs(scene.hf, {"name": None}, prompt="Pay {{name}}?", options=["yes"])
    row = await scene.row(result.holds[0].id)
    assert row.prompt == "Pay ?"
    assert [each.action for each in await scene.audit(row)] == ["created"]


STRICT: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "Pay {{customer.name}}?"}, r"its prompt: 'Pay \{\{customer.name\}\}\?'"),
    ({"context": {"a": {"b": "{{customer.name}}"}}}, r"its context.a.b: '\{\{customer.name\}\}'"),
    ({"sections": [{"type": "context", "content": "{{customer.name}}"}, DECIDE]},
     r"its form: sections\[0\].content: '\{\{customer.name\}\}'"),
    ({"sections": [{"type": "decision", "options": [{"id": "a", "label": "{{customer.name}}"}]}]},
     r"its form: sections\[0\].options\[0\].label"),
]  # fmt: skip


@pytest.mark.covers("TP-3", "HOLD-BAD-02")
@pytest.mark.parametrize(("asked", "why"), STRICT)
async def test_strict_hold_is_not_asked_when_a_variable_is_missing(asked: dict[str, Any], why: str) -> None:
    async with Holdfast("memory:") as hf:
        result = await runs(hf, {}, strict_templates=True, **asked)
        assert result.status is RunStatus.failed
        assert re.search(why, result.error.message)
        assert not result.holds
        assert (await runs(hf, {"customer": {"name": "Ada"}}, strict_templates=True, **asked)).holds


LARGE: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "{{long}}"}, "its prompt: 65,537 bytes"),
    ({"prompt": "{{long}}!"}, "its prompt: {{long}} at column 3: the text has more than 65,536 characters"),
    ({"prompt": "{{half}}{{half}}"}, "the text has more than 65,536 characters"),
    ({"prompt": "{{wide}}"}, "its prompt: 80,000 bytes"),
    ({"context": {"a": "{{long}}"}}, "its context.a: 65,537 bytes"),
    ({"context": {"a": ["{{half}}", "{{half}}"]}}, "its context.a[1]: 40,000 bytes is too large: 25,536 of"),
    ({"sections": [{"type": "input", "field": "x", "default": "{{long}}"}]},
     "its form: sections[0].default: 65,537 bytes"),
]  # fmt: skip
VALUES = {"long": "x" * (MAX_SHOWN + 1), "half": "y" * 40_000, "wide": "é" * 40_000}


@pytest.mark.covers("HOLD-SEC-07", "FM-12")
@pytest.mark.parametrize(("asked", "why"), LARGE)
async def test_hold_is_not_asked_when_it_would_show_more_than_people_can_be_shown(
    asked: dict[str, Any], why: str
) -> None:
    async with Holdfast("memory:") as hf:
        result = await runs(hf, VALUES, **asked)
        assert result.status is RunStatus.failed
        assert why in result.error.message
        assert not result.holds


@pytest.mark.covers("HOLD-SEC-07", "FM-12")
async def test_handler_is_reported_when_what_it_asks_is_too_large() -> None:
    flow = Flow("inside", effect="read")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        with pytest.raises(ValueTooLargeError, match="in node 'work' has 65,537 bytes"):
            await ctx.ask("x" * (MAX_SHOWN + 1), options=["yes"])
        with pytest.raises(InputError, match=r"sections\[0\].content: 65,537 bytes"):
            await ctx.ask("Look", form=[{"type": "context", "content": "x" * (MAX_SHOWN + 1)}, DECIDE])
        return {"done": True}

    async with Holdfast("memory:") as hf:
        assert (await flow.run({}, on=hf)).status is RunStatus.completed


@pytest.mark.covers("HOLD-SEC-07", "TP-4", "TP-6", "HOLD-SEC-08")
async def test_values_are_data_whatever_they_contain(scene: Scene) -> None:
    evil = "{{secret}} <b> \u202ecod.exe\u202c a\u200bb <!channel> =cmd()"
    result = await runs(
        scene.hf, {"text": evil, "secret": "s3"}, prompt="{{text}}", context={"t": "{{text}}"}
    )
    row = await scene.row(result.holds[0].id)
    shown = "{{secret}} <b> \\u202ecod.exe\\u202c a\\u200bb <!channel> =cmd()"
    assert row.prompt == shown
    assert msgspec.json.decode(row.context) == {"t": shown}


@pytest.mark.covers("HOLD-SEC-15")
async def test_answer_is_refused_when_it_is_too_deep_or_too_large(scene: Scene) -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = {"d": deep}
    form = [{"type": "input", "field": "x", "kind": "json"}, DECIDE]
    for asked in ({"options": ["approve"]}, {"sections": form}, {"options": ["approve"], "schema": {}}):
        result = await runs(scene.hf, {}, **asked)
        hold = result.holds[0].id
        for filled in ({"x": deep}, {"x": "y" * MAX_DATA}):
            with pytest.raises((ValueTooLargeError, FormInvalidError)):
                await scene.holds.resolve(DANA, hold, decision="approve", response_data=filled)
        assert (await scene.row(hold)).status == "pending"


@pytest.mark.covers("HOLD-SEC-15", "HOLD-BAD-02")
async def test_flow_is_refused_when_a_pattern_could_take_for_ever() -> None:
    for asked in (
        {"schema": {"properties": {"x": {"pattern": "(a+)+$"}}}},
        {"schema": {"properties": {"x": {"pattern": "(x+x+)+y"}}}},
        {"sections": [{"type": "input", "field": "x", "pattern": "(a+)+$"}]},
    ):
        flow = Flow("asking", effect="pure")
        flow.hold("gate", prompt="Pay?", **asked)
        with pytest.raises(FlowInvalidError, match="pattern"):
            flow.compile()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "Pay {{amount"}, "'{{' is never closed at column 5"),
    ({"prompt": "Pay {{a.__class__}}"}, "'__class__' cannot be shown"),
    ({"context": {"a": ["{{b()}}"]}}, "expected a path, found '()'"),
    ({"assignee": "user:{{a|nothing}}"}, "nothing"),
    ({"sections": [{"type": "table"}]}, "sections[0].type: 'table' is not one of context, input, decision"),
    ({"sections": [{"type": "input", "field": "x", "help": "{{x y}}"}]}, "sections[0].help: expected a path"),
    ({"sections": "form"}, "sections: 'form' is not a list of sections"),
]


@pytest.mark.covers("HOLD-BAD-02", "TP-5", "FM-1")
@pytest.mark.parametrize(("asked", "why"), WRONG)
def test_flow_is_refused_with_the_place_when_a_template_or_section_makes_no_sense(
    asked: dict[str, Any], why: str
) -> None:
    flow = Flow("asking", effect="pure")
    flow.hold("gate", **{"prompt": "Pay?", **asked})
    with pytest.raises(FlowInvalidError) as caught:
        flow.compile()
    assert why in str(caught.value)
    assert "gate" in str(caught.value)
