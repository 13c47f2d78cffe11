"""A hold with a field of every kind, and a flow whose input has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from holdfast import Flow

LARGE = 9007199254740993
OPTIONS = [{"id": "a", "label": "Red"}, {"id": "b", "label": "Blue"}]
LETTER = "Dear customer,\nwe pay 1,840.00.\nRegards"

SECTIONS: list[dict[str, Any]] = [
    {"type": "context", "title": "Letter", "content": "{{letter}}"},
    {"type": "input", "field": "text", "kind": "text", "label": "Text", "min_length": 3, "pattern": "^[A-Z]"},
    {"type": "input", "field": "textarea", "kind": "textarea", "label": "Answer", "original": LETTER,
     "default": "Dear customer,\nwe pay nothing.\nRegards"},
    {"type": "input", "field": "markdown", "kind": "markdown", "label": "Note", "default": "**Bold** words"},
    {"type": "input", "field": "number", "kind": "number", "label": "Number", "min": 0.1, "step": 0.1},
    {"type": "input", "field": "integer", "kind": "integer", "label": "Large number", "default": LARGE},
    {"type": "input", "field": "currency", "kind": "currency", "currency": "EUR", "label": "Amount",
     "original": "1840.00", "default": "900.00", "max": 2000, "extras": {"confidence": "62%"}},
    {"type": "input", "field": "money", "kind": "currency", "label": "Fee"},
    {"type": "input", "field": "percent", "kind": "percent", "label": "Share", "max": 100,
     "extras": {"confidence": 0.97}},
    {"type": "input", "field": "boolean", "kind": "boolean", "label": "Insured", "required": True},
    {"type": "input", "field": "policy", "kind": "text", "label": "Policy", "visible_if": "boolean == true",
     "required": True},
    {"type": "input", "field": "select", "kind": "select", "label": "Colour", "options": OPTIONS},
    {"type": "input", "field": "radio", "kind": "radio", "label": "Paint", "options": OPTIONS},
    {"type": "input", "field": "multiselect", "kind": "multiselect", "label": "Parts", "options": OPTIONS},
    {"type": "input", "field": "date", "kind": "date", "label": "Day"},
    {"type": "input", "field": "datetime", "kind": "datetime", "label": "Moment"},
    {"type": "input", "field": "time", "kind": "time", "label": "Time"},
    {"type": "input", "field": "duration", "kind": "duration", "label": "Length"},
    {"type": "input", "field": "email", "kind": "email", "label": "Mail"},
    {"type": "input", "field": "url", "kind": "url", "label": "Address"},
    {"type": "input", "field": "phone", "kind": "phone", "label": "Phone"},
    {"type": "input", "field": "user", "kind": "user", "label": "Person"},
    {"type": "input", "field": "secret", "kind": "secret-reference", "label": "Key"},
    {"type": "input", "field": "code", "kind": "code", "label": "Code"},
    {"type": "input", "field": "diff", "kind": "diff", "label": "Patch"},
    {"type": "input", "field": "json", "kind": "json", "label": "Settings", "schema": {"type": "object",
     "properties": {"size": {"type": "integer"}}}},
    {"type": "input", "field": "file", "kind": "file", "label": "Bill", "accept": ["text/plain"],
     "max_size": 2048},
    {"type": "input", "field": "fixed", "kind": "text", "label": "Order", "default": "A-17",
     "readonly": True},
    {"type": "input", "field": "odd", "kind": "text", "label": "Odd", "pattern": "(?i)^x"},
    {"type": "input", "field": "table", "kind": "table", "label": "Lines", "columns": [
        {"field": "what", "label": "What", "required": True},
        {"field": "pieces", "kind": "integer", "label": "Pieces", "min": 1},
        {"field": "colour", "kind": "select", "label": "Shade", "options": OPTIONS},
    ]},
    {"type": "decision", "options": [{"id": "book", "label": "Book", "variant": "primary"},
                                     {"id": "drop", "label": "Drop", "variant": "danger"}]},
]  # fmt: skip

MARKDOWN = """## Claim <script>document.title = "owned"</script>

<img src=x onerror="document.title='owned'"> [a *link*](https://example.org/path) and
[another](javascript:document.title='owned') ![a picture](https://example.org/a.png)

| what | price |
|---|---|
| glass | 12.00 |
"""


def _every_kind() -> Flow:
    flow = Flow("kinds")
    flow.hold("ask", prompt="Check claim {{number}}?", assignee="user:local", undo="1s", sections=SECTIONS)
    return flow


def _long_texts() -> Flow:
    flow = Flow("texts")
    flow.hold(
        "ask",
        prompt="Read {{number}}\n\n{{prompt}}",
        assignee="user:local",
        sections=[
            {"type": "context", "title": "Short", "content": MARKDOWN},
            {"type": "context", "title": "Long", "content": "{{long}}"},
        ],
    )
    return flow


@dataclass(frozen=True)
class Line:
    what: str
    pieces: int = 1
    when: date | None = None


@dataclass(frozen=True)
class Sender:
    name: str
    mail: str = ""


@dataclass
class Order:
    number: int
    sender: Sender
    price: float = 0.0
    speed: Literal["slow", "fast"] = "slow"
    day: date | None = None
    tags: list[str] = field(default_factory=list[str])
    lines: list[Line] = field(default_factory=list[Line])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


orders = Flow("orders", state=Order, effect="pure")


@orders.node
async def keep(_s: Order) -> None:
    return None


orders.start(keep)
kinds = _every_kind()
texts = _long_texts()
