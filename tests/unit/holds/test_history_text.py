"""The sentences of a hold's history."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.holds.queries.history import Entry
from holdfast.holds.queries.history_text import history_sentence

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
        "sam answered too late; it was already decided",
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
        "dana sent an incomplete answer: a field was missing or wrong",
    ),
    (
        "user:eve",
        "refused",
        {"action": "view", "code": "forbidden"},
        "eve was not allowed to view: the right to do so is missing",
    ),
    (
        "system:engine",
        "created",
        {"assignee": "group:finance", "expires_at": "2026-11-16T03:38:00Z"},
        "Asked of the group finance, due 16 Nov 03:38",
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
    ("user:a", "claimed", {"until": "2026-11-16T03:38:00Z"}, "a claimed it until 16 Nov 03:38"),
    ("user:a", "of_a_later_version", {"x": 1}, "a: of a later version"),
]


@pytest.mark.parametrize(("actor", "action", "data", "expected"), CASES)
@pytest.mark.covers("PLAIN-WORD-04")
def test_entry_is_one_plain_sentence(actor: str, action: str, data: dict[str, Any], expected: str) -> None:
    entry = Entry(id="x:1", seq=1, at="2026-11-16T03:30:00Z", actor=actor, action=action, data=data)
    assert history_sentence(entry) == expected
