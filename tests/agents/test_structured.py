"""Typed answers: in the provider's own way where it guarantees the form, else as a tool's arguments."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.agents.output_schemas import is_closed, is_strict
from tests.agents.conftest import a_model
from tests.agents.helpers import World, a_flow
from tests.agents.provider import Answer, Provider

pytestmark = pytest.mark.anyio

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
GOOD = '{"name": "Alice", "age": 30}'


def form_in(sent: dict[str, Any]) -> Any:
    """Where each protocol has it."""
    if "input" in sent:
        return sent.get("text", {}).get("format", {}).get("schema")
    if "contents" in sent:
        return sent.get("generationConfig", {}).get("responseJsonSchema")
    return sent.get("output_config", {}).get("format", {}).get("schema")


def tools_in(sent: dict[str, Any]) -> str:
    return msgspec.json.encode(sent.get("tools", [])).decode()


async def test_an_answer_has_the_form_that_was_asked_for_in_the_providers_own_field(
    hf: Holdfast, provider: Provider, kind: str
) -> None:
    native = kind != "openai"
    final = [] if native else [("c2", "final_answer", GOOD)]
    provider.says(
        Answer("I look.", [("c1", "look", {"place": "Kiel"})]), Answer(GOOD if native else "", final)
    )
    world = World()
    flow = a_flow(a_model(kind, provider), world.looks(), prompt="Who?", returns=FORM)
    result = await flow.run({}, on=hf)
    assert result.expect().state["answer"] == {"name": "Alice", "age": 30}
    assert world.done == ["look Kiel"]
    for seen in provider.seen:
        assert form_in(seen.json) == (FORM if native else None)
        assert ("final_answer" in tools_in(seen.json)) is not native


async def test_an_answer_of_another_form_is_corrected_once_and_then_refused(
    hf: Holdfast, provider: Provider, kind: str
) -> None:
    native = kind != "openai"

    def says(text: str) -> Answer:
        return Answer(text) if native else Answer("", [("c1", "final_answer", text)])

    flow = a_flow(a_model(kind, provider), prompt="Who?", returns=FORM, max_repairs=1)
    provider.says(says('{"name": "Alice"}'), says(GOOD))
    assert (await flow.run({}, on=hf)).expect().state["answer"]["age"] == 30
    assert "age" in provider.seen[1].body.decode()
    provider.says(says('{"name": "Alice"}'), says('{"age": 3}'))
    failed = await flow.run({}, on=hf)
    assert failed.status == "failed"
    assert "no usable answer in 2 turns" in str(failed.error)


@pytest.mark.parametrize("kind", ["responses", "anthropic", "gemini"])
async def test_a_form_that_the_provider_cannot_guarantee_is_the_final_answer_tool(
    hf: Holdfast, provider: Provider, kind: str
) -> None:
    loose = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2}},
        "required": ["name"],
    }
    provider.says(Answer("", [("c1", "final_answer", {"name": "Alice"})]))
    result = await a_flow(a_model(kind, provider), prompt="Who?", returns=loose).run({}, on=hf)
    assert result.expect().state["answer"] == {"name": "Alice"}
    assert form_in(provider.seen[0].json) is None
    assert "final_answer" in tools_in(provider.seen[0].json)


def test_which_schemas_are_strict() -> None:
    assert is_strict(FORM)
    optional = {**FORM, "required": ["name"]}
    assert not is_strict(optional)
    assert is_closed(optional)
    for wrong in (
        {**FORM, "additionalProperties": True},
        {**FORM, "properties": {**FORM["properties"], "more": {"type": "object"}}},
        {**FORM, "patternProperties": {}},
        {"type": "array", "items": FORM},
        {**FORM, "properties": {"name": {}}, "required": ["name"]},
    ):
        assert not is_strict(wrong)
        assert not is_closed(wrong)
    nested = {**FORM, "properties": {"all": {"type": "array", "items": FORM}}, "required": ["all"]}
    assert is_strict(nested)
