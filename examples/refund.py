"""A refund: small ones are paid at once, large ones wait for a person.

holdfast run examples/refund.py --input '{"order_id": "A17", "customer": "c-9", "amount": 250}'
holdfast answer RUN approve --resume
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from holdfast import Context, Flow, Retry


@dataclass
class Refund:
    order_id: str
    customer: str
    amount: int
    risk: float = 0.0
    decision: str = ""
    receipt: str = ""


refund = Flow("refund", state=Refund)


@refund.node(effect="read", retry=Retry(3, delay="200ms"))
async def assess(s: Refund) -> dict[str, float]:
    await asyncio.sleep(0.05)  # represents a call to a scoring service
    return {"risk": 0.9 if s.customer.startswith("x") else 0.1}


approve = refund.hold(
    "approve",
    prompt="Refund {{amount}} to {{customer}} for order {{order_id}} (risk {{risk}})?",
    options=["approve", "reject"],
    assignee="group:finance",
    timeout="2d",
    on_timeout="escalate:role:cfo",
)


@refund.node(effect="external", idempotency_key="refund-{{order_id}}", retry=Retry(3, delay="200ms"))
async def pay(s: Refund, ctx: Context) -> dict[str, str]:
    # The key is the same in every attempt: a bank that understands keys pays once, even after a crash.
    return {"receipt": f"paid {s.amount} under key {ctx.idempotency_key}"}


refund.start(assess)
refund.edge(assess, approve, when="amount > 100")
refund.edge(assess, pay, otherwise=True)
refund.edge(approve, pay, when="decision == 'approve'")


if __name__ == "__main__":
    print(refund.run_sync({"order_id": "A17", "customer": "c-9", "amount": 80}).expect().state.receipt)
