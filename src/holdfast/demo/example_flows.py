"""Example flows of the demo's server, one for each state that a run can be in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from holdfast import Agent, Flow, Prices, Scripted, tool, tool_call


@dataclass
class Invoice:
    number: str
    supplier: str
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    total: str = "0.00"
    decision: str = ""
    account: str = ""
    booked: bool = False


invoice = Flow("invoice", state=Invoice)


@invoice.node(effect="read")
async def read_invoice(_s: Invoice) -> dict[str, Any]:
    lines = [
        {"what": "Flanges DN 50", "pieces": 40, "price": "11.90"},
        {"what": "Gaskets", "pieces": 200, "price": "0.85"},
    ]
    return {"lines": lines, "total": "646.00"}


check_invoice = invoice.hold(
    "check_invoice",
    prompt="Book invoice {{number}} of {{supplier}}?",
    context={"supplier": "{{supplier}}", "total": "{{total}} EUR", "lines": "{{lines}}"},
    assignee="user:local",
    priority="high",
    timeout="2d",
    sections=[
        {"type": "input", "field": "total", "kind": "currency", "currency": "EUR", "label": "Amount to book",
         "default": "{{total}}", "required": True},
        {"type": "input", "field": "account", "kind": "select", "label": "Account", "required": True,
         "options": [{"id": "4400", "label": "4400 Material"}, {"id": "4900", "label": "4900 Other costs"}]},
        {"type": "input", "field": "due", "kind": "date", "label": "Pay on"},
        {"type": "input", "field": "why", "kind": "textarea", "label": "What is wrong with it",
         "visible_if": "decision == 'reject'", "required_if": "decision == 'reject'"},
        {"type": "decision", "options": [
            {"id": "book", "label": "Book it", "variant": "primary"},
            {"id": "reject", "label": "Send it back", "variant": "danger"},
        ]},
    ],
)  # fmt: skip


@invoice.node(effect="write", idempotency_key="book-{{number}}")
async def book(_s: Invoice) -> dict[str, Any]:
    return {"booked": True}


invoice.start(read_invoice)
invoice.chain(read_invoice, check_invoice)
invoice.edge(check_invoice, book, when="decision == 'book'")

release = Flow("release", effect="pure")


@release.node
async def run_checks(_s: dict[str, Any]) -> dict[str, Any]:
    return {"checks": "212 passed"}


go_live = release.hold(
    "go_live",
    prompt="Release {{input.version}} to everybody now?",
    assignee="user:local",
    context={"version": "{{input.version}}", "checks": "{{checks}}"},
    options=[
        {"id": "yes", "label": "Release it", "variant": "primary"},
        {"id": "no", "label": "Not now", "requires_comment": True},
    ],
)


@release.node
async def roll_out(_s: dict[str, Any]) -> dict[str, Any]:
    return {"live": True}


release.start(run_checks)
release.chain(run_checks, go_live)
release.edge(go_live, roll_out, when="decision == 'yes'")

mirror = Flow("mirror", effect="pure")


@mirror.node
async def list_files(_s: dict[str, Any]) -> dict[str, Any]:
    return {"files": 3}


@mirror.node
async def copy_files(_s: dict[str, Any]) -> None:
    raise ConnectionError("the other side closed the connection")


mirror.start(list_files)
mirror.chain(list_files, copy_files)


# ---------------------------------------------------------------------- an agent that wants to run a tool


@dataclass
class CustomerCase:
    prompt: str = "Customer c-9 writes that order A17 came broken, and wants the money back."
    answer: str = ""


@tool(effect="read")
async def find_order(order: str) -> dict[str, object]:
    """Finds an order by its number."""
    return {"order": order, "customer": "c-9", "item": "a brass telescope", "paid": 250}


@tool(approval="amount > 100", assignee="user:local", idempotent=True)
async def pay_back(order: str, amount: int, reason: str, idempotency_key: str) -> str:
    """Pays money back for an order."""
    return f"{amount} EUR paid back for {order}, receipt {idempotency_key[:8]}"


# Scripted: the demo needs no network and no key.
_prices = Prices(input="2.50", output="10")
_policy = Agent(
    "policy",
    model=Scripted("Broken on arrival: the whole price is paid back, the item is kept.", prices=_prices),
    instructions="You know the rules of the shop. Quote the one that applies.",
)
_assistant = Scripted(
    [tool_call("find_order", order="A17"), tool_call("policy", task="An item came broken. What now?")],
    tool_call("pay_back", order="A17", amount=250, reason="Broken on arrival"),
    lambda request: f"Done: {request.messages[-1].text}.",
    prices=_prices,
)
support = Flow("support", state=CustomerCase)
support.agent(
    "assistant",
    model=_assistant,
    instructions="You help the customers of a shop. Look at the order before you pay.",
    tools=[find_order, pay_back, _policy.as_tool(description="Asks who knows the rules of the shop.")],
    output="answer",
    max_turns=8,
)

# ---------------------------------------------------------------------- running, and resumed after a kill

BATCHES = 90
reindex = Flow("reindex", effect="read")


@reindex.node
async def open_index(_s: dict[str, Any]) -> dict[str, Any]:
    return {"done": 0}


@reindex.node
async def index_batch(s: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(2)
    return {"done": s["done"] + 1}


@reindex.node
async def swap_index(_s: dict[str, Any]) -> dict[str, Any]:
    return {"live": True}


reindex.chain(open_index, index_batch)
reindex.loop(index_batch, index_batch, when=f"done < {BATCHES}", max=BATCHES)
reindex.edge(index_batch, swap_index, otherwise=True)

# ---------------------------------------------------------------------- asleep, and stopped at a breakpoint

trial = Flow("trial", effect="read")


@trial.node
async def welcome(_s: dict[str, Any]) -> dict[str, Any]:
    return {"welcomed": True}


trial.timer("two_weeks", "14d")


@trial.node
async def ask_to_stay(_s: dict[str, Any]) -> dict[str, Any]:
    return {"asked": True}


trial.chain(welcome, "two_weeks", ask_to_stay)

newsletter = Flow("newsletter", effect="read")


@newsletter.node
async def collect_articles(_s: dict[str, Any]) -> dict[str, Any]:
    week = f"{datetime.now(UTC):%G-%V}"
    return {"week": week, "articles": ["Flanges, again", "What a gasket is for"]}


@newsletter.node(effect="write", idempotency_key="newsletter-{{week}}")
async def send_letter(s: dict[str, Any]) -> dict[str, Any]:
    return {"sent": len(s["articles"])}


newsletter.chain(collect_articles, send_letter)
