"""An agent of a shop with a scripted model, whose calls are written down in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from holdfast import Flow
from holdfast.integrations.pydantic_ai import HoldfastDurability
from tests.integrations.notes import Notes

LOOK = ToolCallPart("look", {"order": "A17"}, "c-look")
PAY = ToolCallPart("pay", {"order": "A17", "amount": 250}, "c-pay")


@dataclass
class Talk:
    question: str = "Order A17 came broken."
    answer: str = ""


def returned(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    return [part for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]


def a_model(notes: Notes, *turns: list[ToolCallPart]) -> FunctionModel:
    """Makes the calls of each turn, then says what the tools returned."""

    def respond(messages: list[ModelMessage]) -> ModelResponse:
        notes.add("model")
        done = sum(isinstance(each, ModelResponse) for each in messages)
        if done < len(turns):
            return ModelResponse(list(turns[done]))
        said = "; ".join(str(part.content) for part in returned(messages))
        return ModelResponse([TextPart(said or "Done.")])

    async def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return respond(messages)

    async def stream(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        for number, part in enumerate(respond(messages).parts):
            if isinstance(part, TextPart):
                for word in part.content.split():
                    yield f"{word} "
            elif isinstance(part, ToolCallPart):
                yield {
                    number: DeltaToolCall(
                        name=part.tool_name, json_args=part.args_as_json_str(), tool_call_id=part.tool_call_id
                    )
                }

    return FunctionModel(answer, stream_function=stream)


def an_agent(
    notes: Notes, *turns: list[ToolCallPart], approval: bool = False, name: str = "support", **options: Any
) -> Agent:
    options.setdefault("effects", {"look": "read"})
    agent = Agent(a_model(notes, *turns), name=name, capabilities=[HoldfastDurability(**options)])

    @agent.tool_plain
    def look(order: str) -> dict[str, Any]:
        notes.add("look")
        return {"order": order, "paid": 250}

    @agent.tool_plain(requires_approval=approval)
    async def pay(order: str, amount: int) -> str:
        notes.add(f"pay {order} {amount}")
        return f"paid {amount}"

    return agent


def a_flow(ask: Callable[[Talk], Any]) -> Flow[Talk]:
    flow = Flow("talk", state=Talk)

    @flow.script
    async def talk(s: Talk) -> dict[str, Any]:
        return {"answer": await ask(s)}

    flow.start(talk)
    return flow


def a_talk(agent: Agent) -> Flow[Talk]:
    async def ask(s: Talk) -> str:
        return (await agent.run(s.question)).output

    return a_flow(ask)
