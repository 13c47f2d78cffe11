"""The flow of the demo: a refund with a retry, a branch, an approval and two outside effects.

The outside world is a folder: `bank.log` is the bank's ledger, `calls.log` records each call of a handler.
Neither is written by Holdfast, so they show what really happened.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from holdfast import Context, Flow, Retry

OUTSIDE = Path(os.environ.get("HOLDFAST_DEMO", "."))


@dataclass
class Refund:
    order: str
    customer: str
    amount: int
    risk: str = ""
    reserved: str = ""
    decision: str = ""
    receipt: str = ""


refund = Flow("refund", state=Refund)


def _note(file: str, line: str) -> None:
    with (OUTSIDE / file).open("a") as out:
        out.write(line + "\n")


def _entered(name: str) -> int:
    """Records the call, and returns how many there were."""
    _note("calls.log", name)
    return (OUTSIDE / "calls.log").read_text().split().count(name)


@refund.node(effect="read", retry=Retry(3, delay="300ms"))
async def check_order(s: Refund) -> dict[str, str]:
    if _entered("check_order") == 1:
        raise ConnectionError("the shop did not answer")
    return {"risk": "low" if s.customer.startswith("c") else "high"}


@refund.node(effect="external", idempotency_key="reserve-{{order}}")
async def reserve(s: Refund, ctx: Context) -> dict[str, str]:
    _entered("reserve")
    _note("bank.log", f"reserved {s.amount} under {ctx.idempotency_key}")
    return {"reserved": ctx.idempotency_key}


@refund.node(effect="read")
async def read_letters(_s: Refund) -> None:
    """Takes long the first time: this is where the process dies."""
    if _entered("read_letters") == 1:
        await asyncio.sleep(60)


approve = refund.hold(
    "approve",
    prompt="Refund {{amount}} EUR to {{customer}} for order {{order}}? The risk is {{risk}}.",
    options=["approve", "reject"],
)


@refund.node(effect="external", idempotency_key="pay-{{order}}")
async def pay(s: Refund, ctx: Context) -> dict[str, str]:
    _entered("pay")
    _note("bank.log", f"paid {s.amount} under {ctx.idempotency_key}")
    return {"receipt": f"R-{s.order}"}


@refund.node(effect="external", idempotency_key="release-{{order}}")
async def release(s: Refund, ctx: Context) -> dict[str, str]:
    _entered("release")
    _note("bank.log", f"released {s.amount} under {ctx.idempotency_key}")
    return {"receipt": "refused"}


refund.start(check_order)
refund.chain(check_order, reserve, read_letters)
refund.edge(read_letters, approve, when="amount > 100")
refund.edge(read_letters, pay, otherwise=True)
refund.edge(approve, pay, when="decision == 'approve'")
refund.edge(approve, release, otherwise=True)
