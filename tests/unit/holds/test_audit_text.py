"""The sentences of the audit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.holds.queries.audit_text import AuditedHold, audit_sentence
from holdfast.types.audit import GENESIS, NewAudit, next_row
from holdfast.types.hold import Option

CASES: list[tuple[str, str, str | None, dict[str, Any] | None, str]] = [
    ("user:dana@acme", "resolved", "h", {"decision": "approve", "channel": "inbox"},
     "dana approved, on the web page"),
    ("user:dana", "resolved", "h", None, "dana answered"),
    ("user:ada", "signed_in", None, {"how": "token"}, "ada signed in"),
    ("user:ada", "token_created", None, {"subject": "service:mail"},
     "ada created a token for the service mail"),
    ("user:ada", "circle_kept", None, {"circle": "group:finance"}, "ada saved the group finance"),
    ("user:ada", "flow_deployed", None, {"flow": "{who.__class__}"}, "ada deployed the flow {who.__class__}"),
    ("user:ada", "person_kept", None, None, "ada saved the person (no person)"),
    ("anonymous", "access_refused", None, {}, "A caller who had not signed in was refused access"),
    ("user:ada", "not_known_here", None, {}, "ada: not known here"),
]  # fmt: skip


@pytest.mark.covers("WB-44-audit", "WB-13")
@pytest.mark.parametrize(("actor", "action", "hold", "data", "text"), CASES)
def test_a_record_of_the_audit_is_a_sentence(
    actor: str, action: str, hold: str | None, data: dict[str, Any] | None, text: str
) -> None:
    """Without data: they were erased."""
    body = b"" if data is None else msgspec.json.encode(data)
    row = next_row("t", 1, GENESIS, NewAudit(at=1, actor=actor, action=action, hold=hold, data=body))
    assert audit_sentence(row) == text
    named = audit_sentence(row, {"h": AuditedHold("Release\n4.2.0 now?"), "other": AuditedHold("Another?")})
    assert named == (f"{text} (“Release 4.2.0 now?”)" if hold else text)


def test_a_long_question_is_shortened_and_one_that_is_gone_is_left_out() -> None:
    row = next_row("t", 1, GENESIS, NewAudit(at=1, actor="user:dana", action="viewed", hold="h", data=b"{}"))
    text = audit_sentence(row)
    assert audit_sentence(row, {"h": AuditedHold("a " * 5_000)}) == f"{text} (“{'a ' * 49}a…”)"
    assert audit_sentence(row, {"h": AuditedHold(" \n ")}) == audit_sentence(row, {}) == text


@pytest.mark.covers("WB-44-audit", "WB-13")
@pytest.mark.parametrize("action", ["resolved", "voted"])
def test_a_decision_in_the_audit_has_the_label_of_its_option(action: str) -> None:
    body = msgspec.json.encode({"decision": "book", "response_data": {"total": "900.00"}})
    row = next_row("t", 1, GENESIS, NewAudit(at=1, actor="user:dana", action=action, hold="h", data=body))
    asked = {"h": AuditedHold("Book it?", (Option("book", "Book it"), Option("needs_work", "needs_work")))}
    assert audit_sentence(row, asked).startswith("dana chose “Book it”")
    assert "900" not in audit_sentence(row, asked)
    other = next_row(
        "t",
        1,
        GENESIS,
        NewAudit(at=1, actor="user:dana", action=action, hold="h", data=b'{"decision":"needs_work"}'),
    )
    assert audit_sentence(other, asked).startswith("dana chose “Needs work”")
