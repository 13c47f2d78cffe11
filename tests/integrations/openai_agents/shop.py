"""An agent of a shop with a scripted model, whose calls are written down in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed; `make partners` runs these tests")

from agents import Agent, Model, ModelResponse, RunConfig, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from holdfast import Context, Flow
from holdfast.integrations.openai_agents import run_agent
from tests.integrations.notes import Notes

QUIET = RunConfig(tracing_disabled=True)


class Call(NamedTuple):
    name: str
    arguments: str
    id: str


LOOK = Call("look", '{"order": "A17"}', "c-look")
PAY = Call("pay", '{"order": "A17", "amount": 250}', "c-pay")


@dataclass
class Talk:
    question: str = "Order A17 came broken."
    answer: str = ""


class ShopModel(Model):
    """Makes the calls of each turn, then says what the tools returned. It keeps nothing: another process
    answers the same."""

    def __init__(self, notes: Notes, *turns: list[Call], fails: Callable[[], None] | None = None) -> None:
        self._notes = notes
        self._turns = turns
        self._fails = fails

    async def get_response(self, *_args: Any, **named: Any) -> ModelResponse:
        given = named["input"]
        items: list[Any] = given if isinstance(given, list) else []
        self._notes.add("model")
        if self._fails is not None:
            self._fails()
        results = [each for each in items if each.get("type") == "function_call_output"]
        done, found = 0, len(results)
        while done < len(self._turns) and found >= len(self._turns[done]):
            found -= len(self._turns[done])
            done += 1
        usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        if done < len(self._turns):
            output = [
                ResponseFunctionToolCall(
                    call_id=call.id, name=call.name, arguments=call.arguments, type="function_call"
                )
                for call in self._turns[done]
            ]
            return ModelResponse(output=list(output), usage=usage, response_id=None)
        said = "; ".join(str(each["output"]) for each in results) or "Done."
        text = ResponseOutputText(text=said, type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", role="assistant", status="completed", type="message", content=[text]
        )
        return ModelResponse(output=[message], usage=usage, response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def an_agent(
    notes: Notes, *turns: list[Call], approval: Any = False, name: str = "support", **options: Any
) -> Agent[Any]:
    @function_tool
    def look(order: str) -> dict[str, Any]:
        notes.add("look")
        return {"order": order, "paid": 250}

    @function_tool(needs_approval=approval)
    async def pay(order: str, amount: int) -> str:
        notes.add(f"pay {order} {amount}")
        return f"paid {amount}"

    return Agent(name=name, model=ShopModel(notes, *turns), tools=[look, pay], **options)


def a_flow(ask: Callable[[Context, Talk], Any]) -> Flow[Talk]:
    flow = Flow("talk", state=Talk)

    @flow.script
    async def talk(s: Talk, ctx: Context) -> dict[str, Any]:
        return {"answer": await ask(ctx, s)}

    flow.start(talk)
    return flow


def a_talk(agent: Any, **options: Any) -> Flow[Talk]:
    looks = any(tool.name == "look" for tool in getattr(agent, "tools", ()))
    options.setdefault("effects", {"look": "read"} if looks else None)
    options.setdefault("run_config", QUIET)

    async def ask(ctx: Context, s: Talk) -> str:
        return str((await run_agent(ctx, agent, s.question, **options)).final_output)

    return a_flow(ask)
