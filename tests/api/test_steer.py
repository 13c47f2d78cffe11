"""`POST /v1/runs/{id}/steer` and `holdfast steer`."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Agent, Context, Flow, Scripted, tool, tool_call
from tests.api.conftest import Server

pytestmark = pytest.mark.anyio


@pytest.mark.covers("CP2-A8")
async def test_a_message_reaches_the_agent_and_a_run_without_one_is_a_conflict(
    server: Server, greeting: Flow
) -> None:
    said: list[Any] = []

    @tool(effect="read")
    async def look(ctx: Context) -> str:
        """Looks around."""
        path = f"/v1/runs/{ctx.run_id}/steer"
        said.append(await server.json("POST", path, json={"text": "East only."}))
        for body in ({"text": ""}, {"text": "x" * 16_385}, {}, {"text": "x", "more": 1}):
            await server.json("POST", path, 422, json=body)
        return "calm"

    model = Scripted(tool_call("look"), "done")
    flow = Flow("steered")
    flow.agent("bot", Agent("bot", model=model, tools=[look], steerable=True), output="answer")
    result = await flow.run({"prompt": "Go"}, on=server.hf)
    assert said[0]["text"] == "East only."
    assert said[0]["run"] == result.run_id
    assert [m.text for m in model.requests[-1].messages if m.role == "user"] == ["Go", "East only."]
    ended = await server.json("POST", f"/v1/runs/{result.run_id}/steer", 409, json={"text": "Hello"})
    assert ended["code"] == "run_ended"
    asking = Flow("asking")
    asking.hold("ask", prompt="Go on?", options=["yes"])
    waiting = await asking.run({}, on=server.hf)
    refused = await server.json("POST", f"/v1/runs/{waiting.run_id}/steer", 409, json={"text": "Hello"})
    assert refused["code"] == "run_status"
    assert (await server.json("POST", "/v1/runs/nosuch/steer", 404, json={"text": "Hello"}))["code"]
