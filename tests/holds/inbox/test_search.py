"""The words by which holds are found."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.holds.queries.search import read_query
from holdfast.types.clock import MICROS
from holdfast.types.status import HoldStatus

NOW = 1_000_000 * MICROS
HOUR = 3600 * MICROS
pytestmark = pytest.mark.covers("LI-1", "HOLD-HAND-01")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("flow:refund flow:invoice", {"flow": ("refund", "invoice")}),
        ("flow:refund,invoice tag:vat", {"flow": ("refund", "invoice"), "tags": ("vat",)}),
        ("priority>=high", {"priority": ("high", "critical")}),
        ("priority<normal", {"priority": ("low",)}),
        ("priority:low", {"priority": ("low",)}),
        ("assignee:me group:finance", {"assignees": (("user", "dana@acme"), ("group", "finance"))}),
        ("assignee:role:cfo", {"assignees": (("role", "cfo"),)}),
        ("status:resolved", {"status": (HoldStatus.resolved,)}),
        ("due<2h", {"expires_to": NOW + 2 * HOUR}),
        ("due:overdue", {"expires_to": NOW}),
        ("age>1h age<2h", {"created_to": NOW - HOUR, "created_from": NOW - 2 * HOUR}),
        ("two words", {"text": "two words"}),
        ("'two words' flow:a", {"text": "two words", "flow": ("a",)}),
        ("it's", {"text": "it's"}),
        ("https://example.com/x", {"text": "https://example.com/x"}),
        ("flow:", {"text": "flow:"}),
        ("text:re:invoice flow:a", {"text": "re:invoice", "flow": ("a",)}),
        ("", {}),
    ],
)
def test_query_is_a_filter_when_it_is_typed(text: str, fields: dict[str, Any]) -> None:
    where = read_query(text, me="user:Dana@ACME", now=NOW).where

    empty = read_query("", me="x", now=NOW).where
    changed = {name for name in where.__struct_fields__ if getattr(where, name) != getattr(empty, name)}
    assert {name: getattr(where, name) for name in changed} == fields


def test_query_says_how_it_was_understood() -> None:
    found = read_query("priority>=high has:comment late fee", me="x", now=NOW)

    assert found.chips == ("priority>=high", "has:comment", 'text "late fee"')
    assert found.has == ("comment",)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("priority>=urgent", "critical"),
        ("priority>critical", "low"),
        ("status:open", "pending"),
        ("due<soon", "duration"),
        ("due:2d", "due<2d"),
        ("flow>refund", "flow:VALUE"),
        ("has:money", "comment"),
        ("foo:bar", "Known: age, assignee, decided, "),
        ("flow:a bogus<2d", "Write text:bogus<2d to search for it as text."),
        ("\udcff", "surrogate"),
    ],
)
def test_query_is_refused_with_what_is_possible_when_a_value_means_nothing(text: str, word: str) -> None:
    with pytest.raises(InputError) as caught:
        read_query(text, me="x", now=NOW)

    assert word in str(caught.value)
