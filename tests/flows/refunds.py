"""A small flow with a read, a question and an effect, which the tests of histories share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast import Context, Flow

GIVEN = {"order": "A17", "customer": "c-9", "amount": 250}


@dataclass
class Refund:
    order: str
    customer: str
    amount: int
    risk: float = 0.0
    receipt: str = ""
    decision: str = ""


def refund_flow(paid: list[str] | None = None) -> Flow:
    flow = Flow("refund", state=Refund)

    async def assess(s: Refund) -> dict[str, Any]:
        return {"risk": s.amount / 500}

    async def pay(s: Refund, ctx: Context) -> dict[str, Any]:
        ctx.spent(tokens=7)
        ctx.artifact("letter", f"{s.customer} gets {s.amount}")
        if paid is not None:
            paid.append(f"{s.customer} {s.amount} {ctx.idempotency_key}")
        return {"receipt": f"r-{s.amount}"}

    async def refuse() -> dict[str, Any]:
        return {"receipt": "none"}

    first = flow.node(effect="read")(assess)
    approve = flow.hold("approve", prompt="Refund {{amount}} to {{customer}}?", options=["approve", "reject"])
    last = flow.node(effect="external")(pay)
    no = flow.node(effect="pure")(refuse)
    flow.start(first)
    flow.edge(first, approve, when="amount > 100")
    flow.edge(first, last, otherwise=True)
    flow.edge(approve, last, when="decision == 'approve'")
    flow.edge(approve, no, when="decision == 'reject'")
    return flow
