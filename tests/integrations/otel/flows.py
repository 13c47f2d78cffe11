"""A flow in which everything happens that is worth telling."""

from __future__ import annotations

import asyncio

from opentelemetry import trace

from holdfast import Context, Flow, Retry

SECRET = "hunter2"

order = Flow("order", effect="read")


@order.node(retry=Retry(3, delay="10ms"))
async def quote(s: dict, ctx: Context) -> dict:
    if ctx.attempt == 1:
        raise ConnectionError(SECRET)
    with trace.get_tracer("the user's own").start_as_current_span("call"):
        ctx.emit(SECRET)
    return {"price": 3, "password": SECRET}


approve = order.hold("approve", prompt=f"Pay with {SECRET}?", options=["yes", "no"])


@order.script
async def settle(s: dict, ctx: Context) -> dict:
    paid = await ctx.step("pay", lambda: 3, effect="external")
    said = await ctx.ask(f"Anything to {SECRET}?")
    ctx.spent(tokens=7, cost=0.5)
    return {"paid": paid, "note": said.decision}


order.chain(quote, approve, settle)

broken = Flow("broken", effect="read")


@broken.node
async def fall(s: dict) -> None:
    raise ValueError(SECRET)


steps = Flow("steps", effect="read")


@steps.node
async def first(s: dict) -> dict:
    return {"a": 1}


@steps.node(effect="external", idempotency_key="second")
async def second(s: dict) -> dict:
    for _ in range(20):  # as anything does that waits for the outside: others have their turns
        await asyncio.sleep(0)
    return {"b": 2}


steps.chain(first, second)
