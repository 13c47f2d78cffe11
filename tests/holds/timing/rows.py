"""Rows of holds as a store would give them, for what decides without one."""

from __future__ import annotations

from typing import Any

from holdfast.types.hold import HoldRow, Option
from holdfast.types.ids import HoldId, RunId
from holdfast.types.status import HoldStatus
from tests.holds.timing.places import HOUR, at

OPENED = at("2026-01-05T10:00:00+00:00")
DUE = OPENED + 2 * HOUR

APPROVE, REJECT = Option("approve", "Approve", "primary"), Option("reject", "Reject", "danger")


def a_row(**fields: Any) -> HoldRow:
    """Pending, with a deadline two hours after it was opened and nothing that says what happens then."""
    known: dict[str, Any] = {
        "id": HoldId("7d0a3f5e-0000-4000-8000-000000000001"),
        "seq": 1,
        "node": "approve",
        "scope": "",
        "visit": 1,
        "ordinal": 0,
        "type": "approval",
        "prompt": "Pay?",
        "options": (APPROVE, REJECT),
        "assignee": "user:dana@acme",
        "assignee_type": "user",
        "assignee_value": "dana@acme",
        "priority": "normal",
        "context": b"{}",
        "schema": None,
        "created_at": OPENED,
        "expires_at": DUE,
        "expiry_action": None,
        "original_timeout": 2 * HOUR,
        "request_hash": "sha256:0",
        "run": RunId("run"),
        "tenant": "default",
        "flow": "refund",
        "status": HoldStatus.pending,
        "version": 3,
    }
    return HoldRow(**{**known, **fields})
