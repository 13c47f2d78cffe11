"""Tools of a server of MCP that an agent of Pydantic AI calls inside a run."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart

from holdfast import RunStatus
from holdfast.integrations.pydantic_ai import HoldfastDurability
from tests.flows.places import Place
from tests.integrations.notes import Notes
from tests.integrations.pydantic_ai.shop import PAY, a_model, a_talk

fastmcp = pytest.importorskip("fastmcp", reason="fastmcp is not installed; `make partners` runs this file")
MCPToolset = importlib.import_module("pydantic_ai.mcp").MCPToolset
pytestmark = pytest.mark.anyio

STOCK = ToolCallPart("stock", {"item": "telescope"}, "c-stock")


def an_agent(notes: Notes, **options: Any) -> Agent:
    """A shop whose stock is at a server; paying needs approval."""
    server = fastmcp.FastMCP("shop")

    @server.tool
    def stock(item: str) -> dict[str, Any]:
        notes.add("stock")
        return {"item": item, "count": 3}

    @server.tool
    def lose() -> str:
        notes.add("lose")
        raise OSError("the line is down")

    turns = options.pop("turns", ([STOCK], [PAY]))
    agent = Agent(
        a_model(notes, *turns),
        name="support",
        toolsets=[MCPToolset(server, id="shop", tool_error_behavior="error")],
        capabilities=[HoldfastDurability(**options)],
    )

    @agent.tool_plain(requires_approval=True)
    def pay(order: str, amount: int) -> str:
        notes.add("pay")
        return f"paid {amount}"

    return agent


@pytest.mark.covers("IN-50", "USERS-PYDANTIC")
async def test_calls_of_a_server_are_recorded_and_not_made_again_after_a_wait(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    flow = a_talk(an_agent(notes, effects={"stock": "read"}))
    result = await flow.run({}, on=await place.hf())
    assert result.status is RunStatus.pending_input, result.error
    await (await (await place.hf()).service()).answer(result.holds[0].id, "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert "'count': 3" in result.state.answer
    assert "paid 250" in result.state.answer
    assert notes.lines == ["model", "stock", "model", "pay", "model"]
    assert ("support__mcp_server__shop.get_tools", "read") in performed
    assert performed.count(("support__mcp_server__shop.call_tool", "read")) == 1, performed


@pytest.mark.covers("IN-50", "IN-53")
async def test_a_call_of_a_server_that_fails_is_in_doubt(place: Place, notes: Notes) -> None:
    flow = a_talk(an_agent(notes, turns=([ToolCallPart("lose", {}, "c-lose")],)))
    result = await flow.run({}, on=await place.hf())
    assert result.status is RunStatus.pending_input
    await (await (await place.hf()).service()).answer(
        result.holds[0].id, "happened", data={"value": "the stock was counted"}
    )
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state.answer == "the stock was counted"
    assert notes.lines.count("lose") == 1
