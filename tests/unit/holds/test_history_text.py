"""The sentences of a hold's history."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.holds.queries.history_text import history_sentence, outcome_sentence
from holdfast.model.forms.json_schema import KEY
from holdfast.types.status import HoldStatus
from tests.unit.holds.test_decided_values import decided

CASES: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "user:dana@acme",
        "resolved",
        {"decision": "approve", "channel": "inbox"},
        "dana approved, on the web page",
    ),
    (
        "user:sam",
        "resolved",
        {"decision": "later", "channel": "cli"},
        "sam chose “later”, on the command line",
    ),
    (
        "user:sam",
        "refused",
        {"action": "resolve", "code": "hold_decided", "status": 409},
        "sam was too late; it was already decided",
    ),
    (
        "user:dana",
        "refused",
        {"action": "resolve", "code": "form_invalid", "status": 422},
        "dana's answer was not accepted: a field was missing or wrong",
    ),
    (
        "user:dana",
        "returned",
        {"action": "resolve", "code": "form_invalid", "status": 422},
        "dana sent an answer that did not fit: a field was missing or wrong",
    ),
    (
        "user:eve",
        "refused",
        {"action": "view", "code": "forbidden"},
        "eve was not allowed to view: the right to do so is missing",
    ),
    ("user:dana", "unsnoozed", {}, "dana ended the snooze"),
    ("user:dana", "unwatched", {}, "dana stopped watching it"),
    (
        "user:dana",
        "refused",
        {"action": "reassign", "code": "invalid_input", "status": 422},
        "dana could not reassign: a given value was not valid",
    ),
    (
        "system:engine",
        "created",
        {"assignee": "group:finance", "expires_at": "2026-11-16T03:38:00Z"},
        "Asked of the group finance, due 16 Nov 03:38 UTC",
    ),
    ("system:engine", "created", {}, "Asked; unassigned"),
    (
        "system:expiry",
        "escalated",
        {"from": "user:a", "to": "group:leads"},
        "Holdfast escalated it to the group leads",
    ),
    ("user:ada", "reassigned", {"to": "unrouted"}, "ada reassigned it to no one; it is unassigned"),
    (
        "policy:small",
        "resolved",
        {"decision": "approve", "rule": "small"},
        "the policy small approved, by the rule small",
    ),
    ("user:a", "claimed", {"until": "2026-11-16T03:38:00Z"}, "a claimed it until 16 Nov 03:38 UTC"),
    ("user:a", "of_a_later_version", {"x": 1}, "a: of a later version"),
]


@pytest.mark.parametrize(("actor", "action", "data", "expected"), CASES)
@pytest.mark.covers("PLAIN-WORD-04")
def test_entry_is_one_plain_sentence(actor: str, action: str, data: dict[str, Any], expected: str) -> None:
    assert history_sentence(actor, action, data) == expected


SECTIONS: list[dict[str, Any]] = [
    {"type": "input", "field": "amount", "kind": "currency", "label": "Amount", "default": "1840.00"},
    {"type": "input", "field": "vat", "kind": "text", "label": "VAT", "default": "N"},
    {"type": "input", "field": "paid", "kind": "boolean", "default": False},
    {"type": "input", "field": "note", "kind": "textarea", "default": "a"},
    {"type": "input", "field": "key", "kind": "secret-reference", "default": "env:A"},
    {"type": "input", "field": "lines", "kind": "table", "default": [{"what": "Glass"}]},
]


@pytest.mark.covers("WB-13")
@pytest.mark.parametrize(
    ("answer", "edits"),
    [
        ({"amount": "900.00"}, " with amount 900.00 (proposed 1,840.00)"),
        ({"amount": "1840.00"}, ""),
        (
            {"amount": "1234567.10", "vat": "NL2"},
            " with amount 1,234,567.10 (proposed 1,840.00) and VAT NL2 (proposed N)",
        ),
        (
            {"vat": "", "note": "x" * 99, "lines": [], "paid": True},
            " with VAT nothing (proposed N), paid yes (proposed no), another value of note and 1 more change",
        ),
        ({"key": "env:B"}, ""),
    ],
)
def test_a_decision_says_what_was_changed_of_the_proposal(answer: dict[str, Any], edits: str) -> None:
    row = decided({KEY: {"sections": SECTIONS}}, {}, answer, status=HoldStatus.resolved)
    data = {"decision": "approve", "channel": "inbox"}
    told = history_sentence("user:dana@acme", "resolved", data, row)
    assert told == f"dana approved{edits}, on the web page"


@pytest.mark.covers("WB-13")
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"resolved_by": "user:dana", "status": HoldStatus.resolved}, "sam was too late; dana had decided"),
        (
            {"resolution": None, "closed_by": "user:kim", "status": HoldStatus.cancelled},
            "sam was too late; kim had withdrawn the question",
        ),
        ({"resolution": None, "status": HoldStatus.expired}, "sam was too late; the deadline had passed"),
    ],
)
def test_who_was_too_late_reads_who_was_first(more: dict[str, Any], expected: str) -> None:
    row = decided(None, {}, None, **more)
    data = {"action": "resolve", "code": "hold_decided", "status": 409}
    assert history_sentence("user:sam", "refused", data, row) == expected


@pytest.mark.covers("WB-13")
def test_a_notice_has_the_sentence_of_the_history() -> None:
    """`outcome_sentence` is what notices say of the end (tests/holds/notify/test_deliverer.py)."""
    resolution = msgspec.json.encode({"decision": "reject", "late": True, "channel": "slack"})
    row = decided(None, {}, None, status=HoldStatus.resolved, resolution=resolution, resolved_by="user:dana")
    assert outcome_sentence(row) == "dana rejected, in Slack, after the deadline"
    closed = {"resolution": None, "closed_by": "user:kim", "closed_reason": "asked twice"}
    row = decided(None, {}, None, status=HoldStatus.cancelled, **closed)
    assert outcome_sentence(row) == "kim withdrew the question: asked twice"
