"""Digests of model requests and tool calls of Pydantic AI, recorded with their steps."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from holdfast import Flow, Holdfast
from holdfast.integrations.pydantic_ai import HoldfastDurability

pytestmark = pytest.mark.anyio


async def digests(
    *, question: str = "Go", place: str = "harbour", system: str = "Be brief."
) -> list[dict[str, str]]:
    def reply(messages: list[Any], _info: Any) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("look", {"place": place})])
        return ModelResponse(parts=[TextPart("Done.")])

    agent = Agent(
        FunctionModel(reply), name="support", system_prompt=system, capabilities=[HoldfastDurability()]
    )

    @agent.tool_plain
    def look(place: str) -> str:
        return f"{place} is calm"

    flow = Flow("talk", effect="read")

    @flow.script
    async def talk() -> dict[str, Any]:
        return {"answer": (await agent.run(question)).output}

    async with Holdfast("memory:") as hf:
        result = (await flow.run({}, on=hf)).expect()
        events = await (await hf.service()).events(result.run_id)
    return [event.data["digests"] for event in events if "digests" in event.data]


def changed(one: dict[str, str], other: dict[str, str]) -> set[str]:
    assert one.keys() == other.keys()
    return {name for name in one if one[name] != other[name]}


@pytest.mark.covers("USERS-DIGESTS")
async def test_two_runs_that_are_the_same_have_the_same_digests() -> None:
    first = await digests()
    assert first == await digests()
    assert [set(each) for each in first] == [
        {"model", "prompt", "tools", "holdfast", "pydantic_ai"},
        {"tool", "arguments", "holdfast", "pydantic_ai"},
        {"model", "prompt", "tools", "holdfast", "pydantic_ai"},
    ]


@pytest.mark.covers("USERS-DIGESTS")
async def test_a_change_shows_in_the_digest_of_what_was_changed() -> None:
    before = await digests()
    for other in (await digests(question="Come"), await digests(system="Be long.")):
        assert [changed(*pair) for pair in zip(before, other, strict=True)] == [{"prompt"}, set(), {"prompt"}]
    moved = await digests(place="pier")
    assert [changed(*pair) for pair in zip(before, moved, strict=True)] == [set(), {"arguments"}, {"prompt"}]
