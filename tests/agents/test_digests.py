"""Digests of what each call of a model and a tool depends on, recorded with its step."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Scripted, tool, tool_call
from tests.agents.helpers import a_flow
from tests.flows.places import told

pytestmark = pytest.mark.anyio


@tool(effect="read")
async def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is calm"


@tool(effect="read", name="look")
async def look_twice(place: str) -> str:
    """Look at a place."""
    return f"{place} is calm, and {place} is calm"


async def digests(hf: Holdfast, model: Any, *tools: Any, prompt: str = "Go") -> list[dict[str, str]]:
    result = await a_flow(model, *tools).run({"prompt": prompt}, on=hf)
    assert result.completed
    events = await told(hf, result, "node.step_done")
    return [event.data["digests"] for event in events if "digests" in event.data]


def scripted(name: str = "m-1") -> Scripted:
    model = Scripted(tool_call("look", place="harbour"), "Done.")
    model.name = name
    return model


def changed(one: dict[str, str], other: dict[str, str]) -> set[str]:
    assert one.keys() == other.keys()
    return {name for name in one if one[name] != other[name]}


@pytest.mark.covers("USERS-DIGESTS")
async def test_each_call_has_digests_of_model_prompt_and_tools(hf: Holdfast) -> None:
    asked, called, asked_again = await digests(hf, scripted(), look)
    assert set(asked) == {"model", "instructions", "prompt", "tools", "holdfast"}
    assert set(called) == {"tool", "code", "arguments", "holdfast"}
    # The conversation grew, and nothing else changed.
    assert changed(asked, asked_again) == {"prompt"}
    assert [asked, called, asked_again] == await digests(hf, scripted(), look)


@pytest.mark.covers("USERS-DIGESTS")
async def test_a_change_shows_in_the_digest_of_what_was_changed(hf: Holdfast) -> None:
    before = await digests(hf, scripted(), look)
    model = await digests(hf, scripted("m-2"), look)
    assert [changed(*pair) for pair in zip(before, model, strict=True)] == [{"model"}, set(), {"model"}]
    prompt = await digests(hf, scripted(), look, prompt="Come")
    assert changed(before[0], prompt[0]) == {"prompt"}
    code = await digests(hf, scripted(), look_twice)
    assert changed(before[1], code[1]) == {"code"}
    assert changed(before[0], code[0]) == set()
    described = await digests(hf, scripted(), look.with_description("Look there."))
    assert changed(before[0], described[0]) == {"tools"}
    assert changed(before[1], described[1]) == {"tool"}


@pytest.mark.covers("USERS-DIGESTS")
async def test_code_of_users_notes_digests_of_its_own(hf: Holdfast) -> None:
    flow = Flow("own", effect="read")

    @flow.script
    async def call(ctx: Context) -> dict[str, Any]:
        def ask() -> str:
            ctx.note_digests(model="m-1")
            ctx.note_digests(prompt="p-1")
            return "fine"

        ctx.note_digests(model="outside a step")
        return {"said": await ctx.step("ask", ask, effect="read")}

    result = await flow.run({}, on=hf)
    (event,) = await told(hf, result, "node.step_done")
    assert event.data["digests"] == {"model": "m-1", "prompt": "p-1"}
