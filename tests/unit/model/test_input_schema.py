"""The schema of a flow's input says what the flow accepts: checked by giving both the same values."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import jsonschema_rs
import pytest

from holdfast import Flow
from holdfast.errors import StateError
from holdfast.model.input_schema import input_schema, type_schema

pytestmark = pytest.mark.covers("SAFE-READ-12")


class Way(Enum):
    card = "card"
    bank = "bank, 'slow' | (old)"


@dataclass(frozen=True)
class Line:
    what: str
    count: int


KINDS: list[tuple[Any, list[Any], list[Any]]] = [
    (str, ["x"], [1, None]),
    (int, [1], ["x", 1.5]),
    (float, [1.5, 1], ["x"]),
    (bool, [True], ["x", 2]),
    (Decimal, ["1.5"], [None, []]),
    (datetime, ["2026-01-02T03:04:05Z"], [None, []]),
    (date, ["2026-01-02"], [None, 7]),
    (Literal["a", "b | c"], ["a", "b | c"], ["b", 1]),
    (Way, ["card", "bank, 'slow' | (old)"], ["cash"]),
    (str | None, ["x", None], [1]),
    (list[int], [[], [1, 2]], [["x"], "x"]),
    (dict[str, int], [{}, {"a": 1}], [{"a": "x"}, []]),
    (dict[str, list[str | int]], [{"a": ["x", 1]}], [{"a": [None]}]),
    (tuple[int, ...], [[1]], [["x"]]),
    (list[Line], [[{"what": "pen", "count": 2}]], [[{"what": 1, "count": 2}], [7]]),
    (Any, [1, "x", None, []], []),
]


def flow_with(kind: Any) -> Flow:
    state = make_dataclass("State", [("value", kind)])
    flow = Flow("typed", state=state, effect="pure")
    flow.node(id="a")(lambda: None)
    return flow


def accepts(flow: Flow, given: Any) -> bool:
    try:
        program = flow.program()
        assert program.schema is not None
        program.schema.start(given)
    except StateError:
        return False
    return True


@pytest.mark.parametrize(("kind", "good", "bad"), KINDS, ids=[str(kind) for kind, _, _ in KINDS])
def test_schema_and_flow_agree(kind: Any, good: list[Any], bad: list[Any]) -> None:
    flow = flow_with(kind)
    schema = input_schema(flow.program().graph.spec)
    fits = jsonschema_rs.Draft202012Validator(schema)
    for value in good:
        assert fits.is_valid({"value": value}), value
        assert accepts(flow, {"value": value}), value
    for value in bad:
        assert not fits.is_valid({"value": value}), value
        assert not accepts(flow, {"value": value}), value
    for given in ({}, {"value": good[0], "other": 1}):
        assert not fits.is_valid(given)
        assert not accepts(flow, given)


def test_untyped_flow_takes_any_object() -> None:
    flow = Flow("free", effect="pure")
    flow.node(id="a")(lambda: None)
    assert input_schema(flow.program().graph.spec) == {"type": "object"}


def test_defaults_are_named_and_not_required() -> None:
    state = make_dataclass("State", [("a", int), ("b", str, "x")])
    flow = Flow("typed", state=state, effect="pure")
    flow.node(id="a")(lambda: None)
    schema = input_schema(flow.program().graph.spec)
    assert schema["required"] == ["a"]
    assert schema["properties"]["b"] == {"type": "string", "default": "x"}


@pytest.mark.parametrize(
    "text", ["", "Own", "Own[int]", "list[", "Literal[<Way.card: 1>]", "a{b", "[", "]x["]
)
def test_unknown_text_leaves_the_value_open(text: str) -> None:
    assert type_schema(text) == {}
