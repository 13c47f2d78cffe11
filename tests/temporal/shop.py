"""Flows whose effects write into a ledger outside: a file, one line for each."""

from __future__ import annotations

import os
from typing import Any

from holdfast import Context, Flow

flow = Flow("shop")


def book(what: str, run: str) -> str:
    line = f"{what} {run}\n".encode()
    ledger = os.open(os.environ["SHOP_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(ledger, line)
        os.fsync(ledger)
    finally:
        os.close(ledger)
    return what


@flow.node(effect="pure")
async def begin(state: Any) -> dict[str, Any]:
    return {"begun": True}


@flow.node
async def pay(state: Any, ctx: Context) -> dict[str, Any]:
    return {"paid": book("pay", ctx.run_id)}


@flow.script
async def deliver(state: Any, ctx: Context) -> dict[str, Any]:
    shipped = await ctx.step("ship", book, "ship", ctx.run_id, effect="external")
    reply = await ctx.ask("Did it arrive?", options=["yes", "no"])
    thanked = await ctx.step("thank", book, "thank", ctx.run_id, effect="external")
    return {"shipped": shipped, "arrived": reply.decision, "thanked": thanked}


flow.chain("begin", "pay", "deliver")

TURNS = 12
turns = Flow("turns")


@turns.node
async def turn(state: Any, ctx: Context) -> dict[str, Any]:
    return {"n": state["n"] + 1, "last": book(f"turn{state['n']}", ctx.run_id)}


turns.loop("turn", "turn", when=f"n < {TURNS}", max=TURNS)
