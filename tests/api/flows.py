"""Flows that servers are tested with."""

from __future__ import annotations

from typing import Any, TypedDict

from holdfast import Flow


class Refund(TypedDict, total=False):
    order: str
    amount: int
    checked: bool
    decision: str
    paid: int


def refund() -> Flow:
    """Checks, asks, pays, and keeps a receipt."""
    flow = Flow("refund", state=Refund)

    @flow.node(effect="pure")
    async def check(s: Any) -> dict[str, Any]:
        return {"checked": True}

    approve = flow.hold("approve", prompt="Refund {{amount}}?", options=["approve", "reject"])

    @flow.node(effect="pure")
    async def pay(s: Any, ctx: Any) -> dict[str, Any]:
        ctx.artifact("receipt.txt", f"paid {s['amount']} for {s['order']}")
        ctx.artifact("raw", b"\x00\x01")
        return {"paid": s["amount"]}

    flow.edge(check, approve)
    flow.edge(approve, pay, when="decision == 'approve'")
    return flow


def both() -> Flow:
    """Two questions at once."""
    flow = Flow("both")

    @flow.node(effect="pure")
    async def begin(s: Any) -> dict[str, Any]:
        return {}

    left = flow.hold("left", prompt="Left?", options=["yes", "no"])
    right = flow.hold("right", prompt="Right?", options=["yes", "no"])
    flow.edge(begin, left)
    flow.edge(begin, right)
    return flow
