"""The conversation before an agent's question, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Scripted, tool, tool_call
from tests.api.conftest import Server
from tests.api.sign_in import bearer, token

pytestmark = pytest.mark.anyio


@tool(effect="read")
async def look(order: str) -> str:
    """Looks an order up."""
    return f"{order}: <b>paid</b>, secret hunter2"


@tool(approval=True)
async def refund(order: str, amount: int) -> str:
    """Pays an order back."""
    return f"refunded {amount}"


def support(*replies: Any) -> Flow:
    flow = Flow("support")
    tools = [look, refund]
    flow.agent("bot", model=Scripted(*replies), instructions="Be fair.", tools=tools, output="answer")
    return flow


@pytest.mark.covers("WB-65", "WB-65-conversation")
async def test_a_person_reads_what_was_said_before_an_agent_asked(server: Server) -> None:
    both = [tool_call("refund", order="A1", amount=5), tool_call("refund", order="A2", amount=7)]
    result = await support(tool_call("look", order="A1"), both, "Done.").run({"prompt": "Help"}, on=server.hf)
    first, second = sorted(result.holds, key=lambda hold: hold.prompt)
    found = await server.json("GET", f"/v1/holds/{first.id}/conversation")
    assert (found["hold"], found["agent"], found["turn"], found["left_out"]) == (first.id, "bot", 2, 0)
    system, user, asked, looked, wants = found["messages"]
    assert [(each["role"], each["turn"], each["text"]) for each in (system, user)] == [
        ("system", 0, "Be fair."),
        ("user", 0, "Help"),
    ]
    assert [(each["tool"], each["arguments"], each["hold"]) for each in asked["calls"]] == [
        ("look", {"order": "A1"}, None)
    ]
    assert (looked["role"], looked["call"]) == ("tool", asked["calls"][0]["id"])
    assert looked["text"].startswith("A1: <b>paid</b>")
    # The calls of a turn stand together, each with its own question.
    assert [each["hold"] for each in wants["calls"]] == [first.id, second.id]
    assert [each["arguments"]["amount"] for each in wants["calls"]] == [5, 7]
    # What follows is not part of what the person decided on; the result of a refused call is.
    service = await server.hf.service()
    await service.answer(first.id, "reject", comment="too much")
    await service.answer(second.id, "approve")
    await support(tool_call("look", order="A1"), both, "Done.").resume(result.run_id, on=server.hf)
    later = await server.json("GET", f"/v1/holds/{first.id}/conversation")
    assert [each["text"] for each in later["messages"][5:]] == [
        "A person refused this call, and it was not made: too much",
        "refunded 7",
    ]


async def test_what_is_too_large_is_named_and_not_left_out_silently(server: Server) -> None:
    @tool(effect="read")
    async def read_all() -> str:
        """Reads everything."""
        return "z" * 300_000

    flow = Flow("large")
    calls = Scripted(tool_call("read_all"), tool_call("refund", order="A1", amount=5), "Done.")
    flow.agent("bot", model=calls, instructions="y" * 300_000, tools=[read_all, refund], output="answer")
    result = await flow.run({"prompt": "Help"}, on=server.hf)
    found = await server.json("GET", f"/v1/holds/{result.holds[0].id}/conversation")
    assert [(each["role"], each["omitted"]) for each in found["messages"]] == [
        ("user", True),
        ("assistant", False),
        ("tool", True),
        ("assistant", False),
    ]


async def test_a_hold_that_no_agent_asked_has_no_conversation_and_others_see_none(server: Server) -> None:
    flow = Flow("plain")
    flow.hold("agree", prompt="Agree?", options=["yes", "no"], assignee="user:dana")
    result = await flow.run({}, on=server.hf)
    path = f"/v1/holds/{result.holds[0].id}/conversation"
    assert (await server.json("GET", path))["messages"] == []
    other = await token(server, "user:eve", "approver", tenant="other", rights=("holds:read",))
    refused = await server.client.get(path, headers=bearer(other))
    assert (refused.status_code, refused.json()["code"]) == (404, "hold_not_found")
