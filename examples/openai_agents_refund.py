"""An agent of the OpenAI Agents SDK in a run: its model and tool calls are recorded, and a refund waits for a
person without a process.

It needs no network and no key: the model is scripted. Leave `model=` out to use one of OpenAI instead.

holdfast run examples/openai_agents_refund.py
holdfast answer RUN approve --resume
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from holdfast import Context, Flow
from holdfast.integrations.openai_agents import run_agent


@dataclass
class Case:
    question: str = "Order A17 came broken. See to it."
    answer: str = ""


class Scripted(Model):
    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],  # noqa: A002
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        items: list[dict[str, Any]] = [] if isinstance(input, str) else input
        found = [each["output"] for each in items if "output" in each]
        if not found:
            return self.reply(self.call("find_order", '{"order_id": "A17"}'))
        if len(found) == 1:
            return self.reply(self.call("refund", '{"order_id": "A17", "amount": 250}'))
        text = ResponseOutputText(text=f"Done: {found[-1]}", type="output_text", annotations=[])
        return self.reply(
            ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
        )

    def call(self, name: str, arguments: str) -> ResponseFunctionToolCall:
        return ResponseFunctionToolCall(
            call_id=f"call-{name}", name=name, arguments=arguments, type="function_call"
        )

    def reply(self, item: ResponseFunctionToolCall | ResponseOutputMessage) -> ModelResponse:
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool
def find_order(order_id: str) -> dict[str, object]:
    """Finds an order by its number."""
    return {"order_id": order_id, "paid": 250}


@function_tool(needs_approval=True)
def refund(order_id: str, amount: int) -> str:
    """Pays money back for an order."""
    return f"refunded {amount} for {order_id}"


agent = Agent[Any](name="support", model=Scripted(), tools=[find_order, refund])
support = Flow("openai_support", state=Case)


@support.script
async def talk(s: Case, ctx: Context) -> dict[str, Any]:
    result = await run_agent(
        ctx,
        agent,
        s.question,
        effects={"find_order": "read"},
        hold={"timeout": "2d"},
        # Without it the SDK sends traces to OpenAI where a key is set.
        run_config=RunConfig(tracing_disabled=True),
    )
    return {"answer": result.final_output}


support.start(talk)

if __name__ == "__main__":
    print(support.run_sync())
