"""Flows whose runs are looked at in the browser tests: one fails, others stop at breakpoints."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from holdfast import Context, Flow, Retry

check_line = Flow[Any]("check_line", effect="pure")


@check_line.node
def check(s: dict[str, Any]) -> dict[str, Any]:
    return {"checked": True}


orders = Flow[Any]("orders", effect="pure")


@orders.node
def read_order(s: dict[str, Any]) -> dict[str, Any]:
    lines = [{"what": "Glass", "pieces": 2}, {"what": "Frame", "pieces": 1}]
    customer = {"name": "Nordwerk", "city": "Kiel"}
    letter = "Dear Nordwerk,\nthank you for your order.\nWe deliver on Monday.\nKind regards"
    return {"account": "none", "lines": lines, "customer": customer, "letter": letter, "remark": ""}


orders.map("check_lines", over="lines", body=check_line, into="checks")


@orders.node
def price(s: dict[str, Any]) -> dict[str, Any]:
    letter = s["letter"].replace("on Monday", f"order {s['number']} on Tuesday")
    customer = {**s["customer"], "discount": 5}
    return {"total": 120, "customer": customer, "letter": letter, "remark": "Fragile"}


@orders.script
async def pay(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    await ctx.step("find_account", lambda: {"found": s["account"]}, effect="read")
    if s["account"] == "none":
        raise ValueError("no such account")
    return {"paid": True}


orders.chain("read_order", "check_lines", "price", "pay")

letters = Flow[Any]("letters", effect="read")


@letters.node(retry=Retry(2, delay="1ms"))
async def write(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    ctx.log.info("writes to %s", s["to"])
    ctx.emit(f"Dear {s['to']}, " if ctx.attempt == 2 else "Dead ")
    if ctx.attempt == 1:
        ctx.log.warning("the pen is <b>empty</b>")
        raise ValueError("no ink")
    await ctx.step("find_address", lambda: {"city": "Kiel"}, effect="read")
    ctx.emit("thank you.")
    ctx.spent(tokens=120, cost=0.25)
    ctx.artifact("letter.txt", "Dear Ada, thank you.")
    return {"written": True}


payments = Flow[Any]("payments", effect="pure")


@payments.node(effect="external")
async def transfer(s: dict[str, Any]) -> dict[str, Any]:
    return {"transferred": True}


payments.chain(
    payments.hold(
        "agree",
        prompt="Pay 900?",
        options=["approve", "reject"],
        assignee="group:payers",
        bind="said",
    ),
    transfer,
    payments.hold("receipt", prompt="Send a receipt?", options=["yes", "no"], bind="receipt"),
)

stops = Flow[Any]("stops", effect="pure")


@stops.node(breakpoint=True)
def first(s: dict[str, Any]) -> None: ...


@stops.node
def second(s: dict[str, Any]) -> None: ...


stops.chain("first", "second")

halts = Flow[Any]("halts", effect="pure")


@halts.node(breakpoint=True)
def one(s: dict[str, Any]) -> None: ...


@halts.node(breakpoint=True)
def two(s: dict[str, Any]) -> None: ...


halts.chain("one", "two")

hangs = Flow[Any]("hangs", effect="pure", mode="strict")


@hangs.node
def begin(s: dict[str, Any]) -> None: ...


@hangs.node
def hang(s: dict[str, Any]) -> None:
    Path(os.environ["HANG"]).touch()
    time.sleep(60)  # its process is killed here


hangs.chain("begin", "hang")

paid = Flow[Any]("paid", effect="pure")


@paid.script
async def receive(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return {"payment": await ctx.wait_for("payment.received", key=s["order"])}


paid.chain("receive")
