"""Example flows of the demo's server: one with a form, one with a comment, one that fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast import Flow


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
