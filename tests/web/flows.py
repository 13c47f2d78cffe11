"""The flows that people decide on in the browser tests."""

from __future__ import annotations

from typing import Any

from holdfast import Flow


def _flow(name: str, undo: str | None) -> Flow:
    flow = Flow(name)

    @flow.node(effect="read")
    async def read_letter(s: dict[str, Any]) -> dict[str, Any]:
        lines = [{"what": "Glass", "pieces": 2}, {"what": "Frame", "pieces": 1}]
        return {"amount": "1840.00", "lines": lines}

    decide = flow.hold(
        "decide",
        prompt="Refund claim {{number}} of Nordwerk?",
        context={"amount": "{{amount}} EUR", "lines": "{{lines}}"},
        assignee="user:local",
        priority="high",
        timeout="2d",
        undo=undo,
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

    @flow.node(effect="write", idempotency_key="pay-{{number}}")
    async def pay(s: dict[str, Any]) -> dict[str, Any]:
        return {"paid": True}

    flow.edge(read_letter, decide)
    flow.edge(decide, pay)
    return flow


claims = _flow("claims", "2s")
# On a busy machine a person in a test takes long to undo.
patient = _flow("patient", "1m")
# With the window that a decision has if a flow says nothing.
default_undo = _flow("default_undo", None)


def _short(name: str, undo: str | None) -> Flow:
    """Without a form: many of them can be decided at once."""
    flow = Flow(name)
    flow.hold(
        "agree", prompt="Agree to {{number}}?", options=["agree", "refuse"], assignee="user:local", undo=undo
    )
    return flow


short = _short("short", None)
# For tests that wait until the decision is final.
brief = _short("brief", "1s")
explained = Flow("explained")
explained.hold(
    "agree",
    prompt="Agree to {{number}}?",
    options=["agree", {"id": "refuse", "requires_comment": True}],
    assignee="user:local",
)


def _silent() -> Flow:
    """Decided by its deadline."""
    flow = Flow("silent")
    options = [{"id": "agree", "label": "Agree"}, {"id": "refuse", "label": "Refuse", "default": True}]
    flow.hold(
        "agree", prompt="Agree to {{number}}?", options=options, assignee="user:local", timeout="1s",
        on_timeout="default_option",
    )  # fmt: skip
    return flow


silent = _silent()
