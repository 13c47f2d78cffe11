"""An agent that wants to run tools."""

from __future__ import annotations

from typing import Any

from holdfast import Flow, Scripted, tool, tool_call

LARGE = 9007199254740993
LETTER = "Order A-17: **broken** <script>document.title='owned'</script> [more](https://example.org/a)"


@tool(effect="read")
async def read_letter(order: str) -> str:
    """Reads the customer's letter."""
    return LETTER


@tool(approval=True, assignee="user:local")
async def refund(order: str, amount: float, account: int, lines: list[str], note: str = "") -> dict[str, Any]:
    """Pays an order back."""
    return {"refunded": amount, "account": account}


def _support() -> Flow:
    flow = Flow("support")
    both = [
        tool_call("refund", order="A-17", amount=250.5, account=LARGE, lines=["Glass", "Frame"]),
        tool_call("refund", order="A-18", amount=10, account=1, lines=[]),
    ]
    model = Scripted(tool_call("read_letter", order="A-17"), both, "Both are done.")
    flow.agent("clerk", model=model, instructions="Be fair.", tools=[read_letter, refund], output="answer")
    return flow


support = _support()
