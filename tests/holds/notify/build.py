"""Notices and rows to tell about."""

from __future__ import annotations

from typing import Any

from holdfast.holds.notify.notice import Notice
from holdfast.types.hold import HoldRow, Option
from holdfast.types.ids import HoldId, RunId, derived_id
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Assignee

NASTY = (
    "Pay <b>Eve</b> & co? <script>alert(1)</script> <!channel> <@U123> *now*\r\n"
    "Bcc: everybody@acme\n[click](javascript:alert(1)) exe\u202egpj.\u200bx https://\u0430pple.com/pay"
    " \x1b[31m"
)


def a_notice(**fields: Any) -> Notice:
    found: dict[str, Any] = {
        "id": "h1:hold.created:1",
        "topic": "hold.created",
        "tenant": "default",
        "hold": derived_id("h1"),
        "run": derived_id("r1"),
        "flow": "refund",
        "node": "approve",
        "type": "approval",
        "prompt": "Refund 250 to c-9?",
        "options": (Option("approve", "Approve"), Option("reject", "Reject")),
        "assignee": Assignee("user", "dana@acme.example"),
        "to": "dana@acme.example",
        "link": "https://holdfast.example/l/v1.abc.def",
    }
    return Notice(**{**found, **fields})


def a_row(**fields: Any) -> HoldRow:
    found: dict[str, Any] = {
        "id": HoldId(derived_id("h1")),
        "run": RunId(derived_id("r1")),
        "tenant": "default",
        "flow": "refund",
        "status": HoldStatus.pending,
        "version": 1,
        "seq": 3,
        "node": "approve",
        "scope": "",
        "visit": 1,
        "ordinal": 0,
        "type": "approval",
        "prompt": "Refund 250 to c-9?",
        "options": (Option("approve", "Approve"), Option("reject", "Reject")),
        "assignee": "user:dana@acme.example",
        "assignee_type": "user",
        "assignee_value": "dana@acme.example",
        "priority": "normal",
        "context": b"{}",
        "schema": None,
        "created_at": 1_000_000,
        "expires_at": None,
        "expiry_action": None,
        "request_hash": "sha256:00",
    }
    return HoldRow(**{**found, **fields})
