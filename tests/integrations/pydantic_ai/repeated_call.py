"""The agent that is run beside DBOS, and its process that dies. Without DBOS: importing it took longer than
what such a process does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, FunctionToolset, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart
from pydantic_ai.toolsets import DynamicToolset

from holdfast import Flow, Holdfast
from holdfast.integrations.pydantic_ai import HoldfastDurability
from holdfast.telemetry import arm
from holdfast.testing.clock import FakeClock
from tests.flows.places import COLD
from tests.integrations.notes import Notes
from tests.integrations.pydantic_ai.shop import LOOK, PAY, a_model

RUN = "00000000-0000-4000-8000-00000000db05"
EFFECTS = {"look": "read", "stock": "read"}
QUESTION = "Order A17 came broken."
TURNS = (
    [LOOK, ToolCallPart("stock", {"item": "telescope"}, "c-stock")],
    [ToolCallPart("pay", {"order": "A17", "amount": -1}, "c-wrong")],
    [PAY],
)


def an_agent(notes: Notes, durability: Any) -> Agent:
    """With tools of its own, a dynamic set of tools, and a call that the model has to repeat."""
    chosen: FunctionToolset[None] = FunctionToolset()

    @chosen.tool_plain
    def stock(item: str) -> dict[str, Any]:
        notes.add("stock")
        return {"item": item, "count": 3, "shelves": ["a", "b"]}

    agent = Agent(
        a_model(notes, *TURNS),
        name="support",
        instructions="Be brief.",
        toolsets=[DynamicToolset(lambda _: chosen, id="chosen")],
        capabilities=[durability],
    )

    @agent.tool_plain
    def look(order: str) -> dict[str, Any]:
        notes.add("look")
        return {"order": order, "paid": 250}

    @agent.tool_plain
    async def pay(order: str, amount: int) -> str:
        if amount < 0:
            raise ModelRetry("The amount is above 0.")
        notes.add(f"pay {order} {amount}")
        return f"paid {amount}"

    return agent


def plain(messages: list[ModelMessage]) -> list[Any]:
    """Without the times, and the ids that each engine gives its runs."""
    return _without(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        left = {"timestamp", "run_id", "conversation_id"}
        return {name: _without(each) for name, each in value.items() if name not in left}
    return [_without(each) for each in value] if isinstance(value, list) else value


@dataclass
class Messages:
    found: list[Any] = field(default_factory=list)


def a_flow(agent: Agent) -> Flow[Messages]:
    flow = Flow("talk", state=Messages)

    @flow.script
    async def talk() -> dict[str, Any]:
        return {"found": plain((await agent.run(QUESTION)).all_messages())}

    flow.start(talk)
    return flow


def die(address: str, folder: str, nth: int) -> None:
    async def main() -> None:
        async with Holdfast(address, clock=FakeClock(), settings=COLD) as hf:
            agent = an_agent(Notes(Path(folder)), HoldfastDurability(effects=EFFECTS))
            arm("after_substep", nth=nth)
            await a_flow(agent).run({}, on=hf, run_id=RUN)

    asyncio.run(main())
