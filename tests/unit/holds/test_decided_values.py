"""The values of a decision as people read them: for every kind of question that carries values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.holds.queries.decided_values import decided_values
from holdfast.model.forms.json_schema import KEY
from holdfast.types.hold import HoldRow

pytestmark = pytest.mark.covers("SAFE-READ-10")

SECTIONS = [
    {"type": "context", "title": "Read", "content": "this"},
    {"type": "input", "field": "amount", "kind": "integer", "label": "The amount", "default": 250},
    {"type": "input", "field": "note", "kind": "text"},
    {"type": "input", "field": "way", "kind": "radio", "default": "a",
     "options": [{"id": "a", "label": "Alpha"}, {"id": "b", "label": "Beta"}]},
    {"type": "input", "field": "many", "kind": "multiselect",
     "options": [{"id": "a", "label": "Alpha"}, {"id": "b", "label": "Beta"}]},
]  # fmt: skip
# Proposed by a machine, and changed by another step before the person is asked.
PROPOSED = [
    {"type": "input", "field": "amount", "kind": "currency", "currency": "EUR", "original": "1840",
     "default": "900.00"},
    {"type": "input", "field": "letter", "kind": "textarea", "original": "We pay.",
     "default": "We pay nothing."},
    {"type": "input", "field": "fee", "kind": "currency", "currency": "EUR", "default": 5},
    {"type": "input", "field": "share", "kind": "percent"},
]  # fmt: skip
TOOL = {"tool": "pay", "arguments": {"amount": 250, "to": "c-9"}}

CASES: list[tuple[str, Any, Any, Any, list[tuple[Any, ...]]]] = [
    ("a form that was changed", {KEY: {"sections": SECTIONS}}, {},
     {"amount": 200, "note": "x", "way": "b", "many": ["a", "b"]},
     [("The amount", 200, 250, True), ("Note", "x", None, False), ("Way", "Beta", "Alpha", True),
      ("Many", ["Alpha", "Beta"], None, False)]),
    ("a form that was confirmed", {KEY: {"sections": SECTIONS}}, {}, {"amount": 250, "way": "a"},
     [("The amount", 250, 250, False), ("Way", "Alpha", "Alpha", False)]),
    ("a proposal that was replaced before the question", {KEY: {"sections": PROPOSED}}, {},
     {"amount": "850.50", "letter": "We pay nothing.", "fee": "5", "share": "2"},
     [("Amount", "850.50", "1840", True), ("Letter", "We pay nothing.", "We pay.", True),
      ("Fee", "5", "5", False), ("Share", "2", None, False)]),
    ("a form with changes of the approver", {KEY: {"sections": SECTIONS}}, {},
     {"modifications": {"output": "new"}}, [("Changes", {"output": "new"}, None, False)]),
    ("a tool's call as it was", {"type": "object"}, TOOL, None,
     [("Amount", 250, 250, False), ("To", "c-9", "c-9", False)]),
    ("a tool's call with other arguments", {"type": "object"}, TOOL,
     {"arguments": {"amount": 200, "to": "c-9", "memo": "m"}},
     [("Amount", 200, 250, True), ("To", "c-9", "c-9", False), ("Memo", "m", None, True)]),
    ("a tool's call with modifications", {"type": "object"}, TOOL,
     {"modifications": {"tool_args": {"amount": 5}, "instructions": "less"}},
     [("Amount", 5, 250, True), ("To", "c-9", "c-9", False), ("Message to the agent", "less", None, False)]),
    ("plain data", None, {}, {"pay_now": True}, [("Pay now", True, None, False)]),
    ("data that is no object", {"type": "array"}, {}, [1, 2], [("Data", [1, 2], None, False)]),
    ("a decision without values", None, {}, None, []),
]  # fmt: skip


def decided(schema: Any, context: Any, data: Any, **more: Any) -> HoldRow:
    resolution = msgspec.json.encode({"decision": "ok", "response_data": data, "comment": None})
    given = {"id": "h", "run": "r", "resolution": resolution, "context": msgspec.json.encode(context), **more}
    given["schema"] = None if schema is None else msgspec.json.encode(schema)
    needed = {
        field.encode_name: _filler(field)
        for field in msgspec.structs.fields(HoldRow)
        if field.required and field.name not in given
    }
    return HoldRow(**{**needed, **given})


def _filler(field: Any) -> Any:
    return 0 if "int" in str(field.type) else ""


@pytest.mark.parametrize(("schema", "context", "data", "expected"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])  # fmt: skip
def test_decided_values_are_shown_with_labels_and_edits(
    schema: Any, context: Any, data: Any, expected: list[tuple[Any, ...]]
) -> None:
    found = decided_values(decided(schema, context, data))
    assert [(each.label, each.value, each.proposed, each.edited) for each in found] == expected


def test_open_hold_has_no_decided_values() -> None:
    assert decided_values(decided({"type": "object"}, TOOL, None, resolution=None)) == []
