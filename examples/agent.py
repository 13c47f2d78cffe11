"""A durable agent: each turn is a checkpoint, each tool call runs once, and a
refund of more than 100 waits for a person.

It needs no network and no key: the model is scripted. Replace it with OpenAI("...") or Anthropic("...").

holdfast run examples/agent.py
holdfast answer RUN approve --resume
holdfast answer RUN approve --data '{"modifications": {"arguments": {"amount": 80}}}' --resume
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import Agent, Budget, Flow, Prices, Scripted, tool, tool_call


@dataclass
class Case:
    prompt: str = "Customer c-9 says that order A17 came broken. See to it."
    answer: str = ""


@tool(effect="read")
async def find_order(order_id: str) -> dict[str, object]:
    """Finds an order by its number."""
    return {"order_id": order_id, "customer": "c-9", "item": "a brass telescope", "paid": 250}


@tool(approval="amount > 100", idempotent=True)
async def refund(order_id: str, amount: int, idempotency_key: str) -> str:
    """Pays money back for an order."""
    return f"refunded {amount} for {order_id}, receipt {idempotency_key[:8]}"


# Your provider's price per million tokens.
PRICES = Prices(input="2.50", output="10")

# A sub-agent: it has its own conversation, and reports back.
policy = Agent(
    "policy",
    model=Scripted("Broken on arrival: the whole price is paid back, the item is kept.", prices=PRICES),
    instructions="You know the shop's rules. Quote the one that applies.",
)

assistant = Scripted(
    [tool_call("find_order", order_id="A17"), tool_call("policy", task="An item came broken. What now?")],
    tool_call("refund", order_id="A17", amount=250),
    lambda request: f"I have seen to it: {request.messages[-1].text}.",
    prices=PRICES,
)

support = Flow("support", state=Case)
support.agent(
    "assistant",
    model=assistant,
    instructions="You help the customers of a shop. Look before you pay.",
    tools=[find_order, refund, policy.as_tool(description="Asks who knows the shop's rules.")],
    output="answer",
    max_turns=8,
    budget=Budget(tokens=20_000, money="0.50", seconds=300),
)


if __name__ == "__main__":
    print(support.run_sync())
