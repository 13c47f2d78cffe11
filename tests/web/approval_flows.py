"""An agent that wants to run tools."""

from __future__ import annotations

import os
from typing import Any

from holdfast import Flow, Scripted, tool, tool_call
from holdfast.holds.actions import undo_window

SERVED = "SERVED_BY_WEB_TESTS"
"""Set in the processes of servers."""

if os.environ.get(SERVED):
    # A question about a tool has the default window, and these tests wait for its end. Only in the server's
    # process: other tests of the process that imports this need the real one.
    setattr(undo_window, "UNDO_SECONDS", 2)  # noqa: B010

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
