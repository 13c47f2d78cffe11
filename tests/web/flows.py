"""The flows that people decide on in the browser tests. A decision can be undone for a second."""

from __future__ import annotations

from typing import Any

from holdfast import Flow

claims = Flow("claims")


@claims.node(effect="read")
async def read_letter(s: dict[str, Any]) -> dict[str, Any]:
    return {"amount": "1840.00", "lines": [{"what": "Glass", "pieces": 2}, {"what": "Frame", "pieces": 1}]}


decide = claims.hold(
    "decide",
    prompt="Refund claim {{number}} of Nordwerk?",
    context={"amount": "{{amount}} EUR", "lines": "{{lines}}"},
    assignee="user:local",
    priority="high",
    timeout="2d",
    undo="2s",
    sections=[
        {"type": "input", "field": "amount", "kind": "currency", "currency": "EUR", "label": "Amount",
         "default": "{{amount}}", "required": True, "extras": {"confidence": 0.62}},
        {"type": "input", "field": "account", "kind": "select", "label": "Account", "required": True,
         "options": [{"id": "4400", "label": "4400 Material"}, {"id": "4900", "label": "4900 Other"}]},
        {"type": "input", "field": "why", "kind": "textarea", "label": "What is wrong with it",
         "visible_if": "decision == 'reject'", "required_if": "decision == 'reject'"},
        {"type": "decision", "options": [
            {"id": "refund", "label": "Refund", "variant": "primary"},
            {"id": "reject", "label": "Reject", "variant": "danger"},
        ]},
    ],
)  # fmt: skip


@claims.node(effect="write", idempotency_key="pay-{{number}}")
async def pay(s: dict[str, Any]) -> dict[str, Any]:
    return {"paid": True}


claims.edge(read_letter, decide)
claims.edge(decide, pay)
