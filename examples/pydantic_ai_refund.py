"""An agent of Pydantic AI in a run: its model requests and tool calls are recorded, and a refund waits for a
person without a process.

It needs no network and no key: the model is scripted. Give the agent "openai:..." or "anthropic:..." instead.

holdfast run examples/pydantic_ai_refund.py
holdfast answer RUN approve --resume
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from holdfast import Flow
from holdfast.integrations.pydantic_ai import HoldfastDurability


@dataclass
class Case:
    question: str = "Order A17 came broken. See to it."
    answer: str = ""


def scripted(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    found = [part for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
    if not found:
        return ModelResponse([ToolCallPart("find_order", {"order_id": "A17"})])
    if len(found) == 1:
        return ModelResponse([ToolCallPart("refund", {"order_id": "A17", "amount": 250})])
    return ModelResponse([TextPart(f"Done: {found[-1].content}")])


agent = Agent(
    FunctionModel(scripted),
    name="support",
    capabilities=[HoldfastDurability(effects={"find_order": "read"}, hold={"timeout": "2d"})],
)


@agent.tool_plain
def find_order(order_id: str) -> dict[str, object]:
    """Finds an order by its number."""
    return {"order_id": order_id, "paid": 250}


@agent.tool_plain(requires_approval=True)
def refund(order_id: str, amount: int) -> str:
    """Pays money back for an order."""
    return f"refunded {amount} for {order_id}"


support = Flow("pydantic_support", state=Case)


@support.script
async def talk(s: Case) -> dict[str, str]:
    return {"answer": (await agent.run(s.question)).output}


support.start(talk)

if __name__ == "__main__":
    print(support.run_sync())
