"""What fits a schema, what does not, and where it says so."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from holdfast.holds.forms.json_schema import KEYWORDS, MAX_PROBLEMS, TOO_MUCH, problems_in
from holdfast.holds.forms.schema_budget import MAX_COST, PER_SECOND, schema_budget
from holdfast.model.checks import json_schemas
from holdfast.model.checks.json_schemas import schema_faults

FITS: list[tuple[Any, Any]] = [
    ({}, {"any": ["thing", None]}),
    ({"type": "null"}, None),
    ({"type": ["string", "null"]}, None),
    ({"type": "integer"}, 3.0),
    ({"type": "number"}, 3),
    ({"type": "array"}, []),
    ({"type": "boolean"}, False),
    ({"enum": [1, "a"]}, 1.0),
    ({"const": {"a": [1, True]}}, {"a": [1, True]}),
    ({"properties": {"a": {"type": "string"}}}, {"b": 1}),
    ({"properties": {"a": {"type": "string"}}}, "not an object"),
    ({"required": ["a"]}, {"a": None}),
    ({"properties": {"a": True}, "additionalProperties": {"type": "integer"}}, {"a": "x", "b": 1}),
    ({"items": {"type": "integer"}}, [1, 2]),
    ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", 1]),
    ({"uniqueItems": True}, [1, True, "1"]),
    ({"minimum": 1, "maximum": 1}, 1),
    ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"minimum": 5}, True),
    ({"multipleOf": 0.1}, 0.3),
    ({"minLength": 1, "maxLength": 2}, "äö"),
    ({"pattern": "b+"}, "abbc"),
    ({"minItems": 1, "maxItems": 1}, [0]),
    ({"minProperties": 1, "maxProperties": 1}, {"a": 0}),
    ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, 3),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, 3),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, 3),
    ({"not": {"type": "string"}}, 3),
    ({"title": "Amount", "description": "in cents", "x-unit": "ct"}, 3),
]

WRONG: list[tuple[Any, Any, str]] = [
    ({"type": "integer"}, True, "data: true is not an integer"),
    ({"type": "integer"}, 1.5, "data: 1.5 is not an integer"),
    ({"type": ["string", "null"]}, [], "data: a list is not a string or null"),
    ({"type": "object"}, None, "data: null is not an object"),
    ({"type": "boolean"}, 1, "data: 1 is not a boolean"),
    ({"enum": [1, "a"]}, True, "data: true is not one of 1, 'a'"),
    ({"const": 0}, False, "data: false is not 0"),
    ({"properties": {"a": {"type": "string"}}}, {"a": 1}, "data.a: 1 is not a string"),
    ({"required": ["a"]}, {}, "data.a: is missing"),
    ({"additionalProperties": False}, {"b": 1}, "data.b: is not an allowed field"),
    ({"additionalProperties": {"type": "string"}}, {"b": 1}, "data.b: 1 is not a string"),
    ({"items": {"type": "integer"}}, [1, "x"], "data[1]: 'x' is not an integer"),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], "data[1]: nothing is allowed here"),
    ({"prefixItems": [{"type": "string"}]}, [1], "data[0]: 1 is not a string"),
    ({"prefixItems": [False]}, [1], "data[0]: nothing is allowed here"),
    ({"properties": {"a": False}}, {"a": 1}, "data.a: nothing is allowed here"),
    (
        {"items": {"anyOf": [{"type": "string"}, {"minimum": 3}]}},
        [2],
        "(data[0]: 2 is not a string; or data[0]: 2",
    ),
    ({"uniqueItems": True}, [1, 2, 1.0], "data[2]: 1 is a duplicate of [0]"),
    ({"minimum": 1}, 0, "data: 0 is not at least 1"),
    ({"maximum": 1}, 2, "data: 2 is not at most 1"),
    ({"exclusiveMinimum": 1}, 1, "data: 1 is not above 1"),
    ({"exclusiveMaximum": 1}, 1, "data: 1 is not below 1"),
    ({"multipleOf": 0.1}, 0.35, "data: 0.35 is not a multiple of 0.1"),
    ({"minLength": 2}, "a", "data: has 1 characters, fewer than 2"),
    ({"maxLength": 2}, "abc", "data: has 3 characters, more than 2"),
    ({"pattern": "^b+$"}, "abb", "data: 'abb' does not match ^b+$"),
    ({"pattern": "a"}, "a" * 1_001, "at most 1000"),
    ({"minItems": 1}, [], "data: has 0 items, fewer than 1"),
    ({"maxItems": 0}, [1], "data: has 1 items, more than 0"),
    ({"minProperties": 1}, {}, "data: has 0 entries, fewer than 1"),
    ({"maxProperties": 0}, {"a": 1}, "data: has 1 entries, more than 0"),
    ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, 2, "data: 2 matches none of the 2 alternatives"),
    ({"oneOf": [{"type": "string"}, {"minimum": 3}]}, 2, "data: 2 matches none of the 2 alternatives"),
    (
        {"oneOf": [{"type": "integer"}, {"minimum": 3}]},
        3,
        "data: 3 matches 2 alternatives, but must match exactly one",
    ),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, 2, "data: 2 is not at least 3"),
    ({"not": {"type": "integer"}}, 2, "data: 2 matches a schema that is not allowed"),
]

NONSENSE: list[tuple[Any, str]] = [
    ([], "schema: [] is not a schema"),
    ({"type": "text"}, "schema.type: 'text' is not one of null, boolean"),
    ({"type": []}, "schema.type: [] is neither"),
    ({"type": [["string"]]}, "schema.type: ['string'] is not one of"),
    ({"properties": ["a"]}, "schema.properties: ['a'] is not an object of schemas"),
    ({"properties": {"a": "string"}}, "schema.properties.a: 'string' is not a schema"),
    ({"required": "a"}, "schema.required: 'a' is not a list of names"),
    ({"required": [1]}, "schema.required: [1] is not a list of names"),
    ({"items": {"type": "int"}}, "schema.items.type: 'int' is not one of"),
    ({"anyOf": []}, "schema.anyOf: [] is not a list of schemas"),
    ({"allOf": [{"type": 5}]}, "schema.allOf[0].type: 5 is neither"),
    ({"not": None}, "schema.not: None is not a schema"),
    ({"enum": "ab"}, "schema.enum: 'ab' is not a list of values"),
    ({"minimum": "1"}, "schema.minimum: '1' is not a number"),
    ({"maximum": True}, "schema.maximum: True is not a number"),
    ({"multipleOf": 0}, "schema.multipleOf: 0 is not a number above 0"),
    ({"minLength": -1}, "schema.minLength: -1 is not a count"),
    ({"maxItems": 1.5}, "schema.maxItems: 1.5 is not a count"),
    ({"uniqueItems": 1}, "schema.uniqueItems: 1 is neither true nor false"),
    ({"pattern": "("}, "schema.pattern: '(' is not a regular expression"),
    ({"pattern": 5}, "schema.pattern: 5 is not a regular expression"),
    ({"minLength": 3, "maxLength": 2}, "schema: minLength 3 is above maxLength 2"),
    ({"$ref": "#/$defs/A"}, "schema.$ref: references are not followed"),
    ({"patternProperties": {}}, "schema.patternProperties: is not a keyword"),
    ({"requird": ["a"]}, "schema.requird: is not a keyword"),
    ({"enum": [object()]}, "schema: is not JSON"),
]


@pytest.mark.parametrize(("schema", "value"), FITS)
def test_value_has_no_problem_when_it_fits(schema: Any, value: Any) -> None:
    assert problems_in(value, schema) == []


@pytest.mark.parametrize(("schema", "value", "part"), WRONG)
def test_value_has_one_problem_with_its_path_when_it_does_not_fit(schema: Any, value: Any, part: str) -> None:
    (problem,) = problems_in(value, schema)
    assert part in problem


@pytest.mark.parametrize(("schema", "part"), NONSENSE)
def test_schema_has_one_fault_with_its_place_when_it_makes_no_sense(schema: Any, part: str) -> None:
    (fault,) = schema_faults(schema)
    assert part in fault


def test_every_problem_is_reported_when_several_things_are_wrong() -> None:
    line = {
        "type": "object",
        "properties": {"price": {"type": "number", "minimum": 0}, "name": {"type": "string"}},
        "required": ["name", "price"],
        "additionalProperties": False,
    }
    schema = {"type": "object", "properties": {"lines": {"type": "array", "items": line}}, "required": ["by"]}
    given = {"lines": [{"name": "a", "price": -1}, {"price": "2", "color": 1}]}
    assert problems_in(given, schema) == [
        "data.lines[0].price: -1 is not at least 0",
        "data.lines[1].price: '2' is not a number",
        "data.lines[1].name: is missing",
        "data.lines[1].color: is not an allowed field",
        "data.by: is missing",
    ]


def test_every_fault_is_reported_when_a_schema_has_several() -> None:
    assert len(schema_faults({"type": "text", "items": {"minimum": "a"}, "$ref": "#"})) == 3


def test_keywords_are_checked_in_answers_when_a_schema_may_have_them() -> None:
    assert KEYWORDS == json_schemas.KEYWORDS


MANY: list[tuple[str, Any, Any]] = [
    ("alternatives", {"items": {"anyOf": [{"const": each} for each in range(500)]}}, [499] * 2_000),
    ("one of", {"items": {"oneOf": [{"const": each} for each in range(500)]}}, [499] * 2_000),
    ("not", {"items": {"not": {"anyOf": [{"const": each} for each in range(500)]}}}, [500] * 2_000),
    ("all of", {"items": {"allOf": [{"minimum": 0}] * 500}}, [499] * 2_000),
    ("duplicates", {"allOf": [{"uniqueItems": True}] * 500}, list(range(20_000))),
    ("large constants", {"items": {"anyOf": [{"const": [[*range(2_000), each]]} for each in range(20)]}},
     [[[*range(2_000), 19]]] * 100),
    ("names", {"items": {"properties": {f"n{each}": {} for each in range(2_000)}}}, [{}] * 2_000),
    ("types", {"items": {"type": ["string"] * 1_999 + ["object"]}}, [{}] * 2_000),
    ("another version", {"items": {"$schema": "http://json-schema.org/draft-07/schema#",
                                   "anyOf": [{"const": each} for each in range(500)]}}, [499] * 2_000),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), [each[1:] for each in MANY], ids=[each[0] for each in MANY])
def test_comparison_is_refused_when_it_costs_too_much(
    schema: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.holds.forms.schema_budget.MAX_COST", 100_000)
    with schema_budget() as budget:
        assert problems_in(value, schema) == [TOO_MUCH]
    assert 100_000 < budget.spent < 200_000


def test_long_lists_are_compared_when_their_schema_is_small() -> None:
    assert problems_in(["v999"] * 20_000, {"items": {"enum": [f"v{each}" for each in range(1_000)]}}) == []
    rows = [{"name": "a", "price": 1.5, "count": 2}] * 5_000
    row = {"properties": {"name": {"type": "string"}, "price": {"minimum": 0}}, "required": ["count"]}
    assert problems_in(rows, {"items": row}) == []


def test_problems_are_few_and_short_when_everything_is_wrong() -> None:
    values = [f"value-{each}" for each in range(1_000)]
    found = problems_in([0] * 20_000, {"items": {"enum": values}})
    assert len(found) == MAX_PROBLEMS + 1
    assert found[0] == f"data[0]: 0 is not one of {', '.join(map(repr, values[:20]))} and 980 more"
    assert found[-1] == "data: has more than 100 problems"
    alternatives = [{"properties": {"a": {"anyOf": [{"const": each * 90}] * 50}}} for each in "abcdefghijklm"]
    (text,) = problems_in({"a": 1}, {"anyOf": alternatives})
    assert len(text) <= 1_000
    (long,) = problems_in({"k" * 10_000: 1}, {"additionalProperties": {"pattern": "a"}, "maxProperties": 0})
    assert len(long) <= 1_000


def test_library_writes_out_no_value_when_it_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages contain the `repr` of value and schema, and nothing reads them."""
    messages: list[int] = []

    class Watched(jsonschema.ValidationError):
        def __init__(self, message: str, *given: Any, **more: Any) -> None:
            messages.append(len(message))
            super().__init__(message, *given, **more)

    monkeypatch.setattr("jsonschema._keywords.ValidationError", Watched)
    problems_in([1] * 10_000, {"anyOf": [{"type": "string"}] * 20})
    every = [{"type": "null"}, {"maxLength": 1}, {"not": {"minLength": 1, "x-note": "x" * 9_000}}]
    problems_in("x" * 10_000, {"allOf": every})
    assert len(messages) > 20
    assert max(messages) < 300


def test_fields_of_a_form_share_what_their_comparison_may_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.holds.forms.schema_budget.MAX_COST", 100_000)
    with schema_budget() as budget:
        for _ in range(10):
            problems_in(
                [499] * 10, {"items": {"anyOf": [{"const": each, "type": "integer"} for each in range(500)]}}
            )
        assert 100_000 < budget.spent < 200_000
        assert problems_in(1, {}) == [TOO_MUCH]


def test_patterns_are_counted_by_their_time_when_a_form_has_many(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr("holdfast.holds.forms.schema_budget.thread_time", lambda: next(clock))
    asked: list[str] = []
    monkeypatch.setattr(
        "holdfast.holds.forms.json_schema.matches", lambda _pattern, text: asked.append(text) is None
    )
    assert problems_in(["a"] * 50, {"items": {"pattern": "a"}}) == [TOO_MUCH]
    assert len(asked) <= 1 + MAX_COST // PER_SECOND


def test_nothing_is_valid_when_the_schema_makes_no_sense() -> None:
    assert problems_in("x", {"type": "text"}) == [
        "the hold's schema.type: 'text' is not one of null, boolean, integer, number, string, array, object"
    ]


def test_schema_is_refused_when_it_is_too_deep() -> None:
    deep: dict[str, Any] = {}
    for _ in range(json_schemas.MAX_DEPTH + 1):
        deep = {"items": deep}
    (fault,) = schema_faults(deep)
    assert "levels deep" in fault


def test_value_is_refused_when_it_is_too_deep_to_compare() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert problems_in([deep, deep], {"uniqueItems": True}) == ["data: is nested too deeply to be compared"]


@pytest.mark.covers("CV-5")
def test_many_problems_are_cut_and_each_is_short() -> None:
    found = problems_in(["x"] * 20_000, {"items": {"enum": [f"t{i}" for i in range(1000)]}})
    assert found[-1] == "data: has more than 100 problems"
    assert len(found) == 101
    assert max(map(len, found)) < 1000
    assert found[0].endswith("'t19' and 980 more")
    way = {"properties": {"a": {"enum": ["y" * 50] * 20}}}
    [told] = problems_in({"a": "x"}, {"anyOf": [way] * 300})
    assert len(told) == 1000


@pytest.mark.covers("CV-5")
def test_value_that_takes_too_long_to_compare_is_refused_and_not_compared_on() -> None:
    several = {"anyOf": [{"properties": {"a": {"const": i}}} for i in range(500)]}
    [told] = problems_in([{"a": 499}] * 2000, {"items": several})
    assert told == TOO_MUCH


@pytest.mark.covers("CV-5")
@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (["c499"] * 2000, {"items": {"anyOf": [{"const": f"c{i}", "title": "C"} for i in range(500)]}}),
        (list(range(200_001)), {"items": {"type": "number"}}),
        ([{"a": 1}] * 20_000, {"items": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
    ],
    ids=["constants", "numbers", "objects"],
)  # fmt: skip
def test_large_value_that_fits_is_accepted(value: object, schema: object) -> None:
    assert problems_in(value, schema) == []
    assert problems_in([*value, None], schema)  # type: ignore[misc]


def test_alternatives_of_constants_are_told_as_before() -> None:
    [told] = problems_in("c", {"anyOf": [{"const": "a"}, {"const": "b"}]})
    assert (
        told == "data: 'c' matches none of the 2 alternatives (data: 'c' is not 'a'; or data: 'c' is not 'b')"
    )
    assert problems_in("a", {"anyOf": [{"const": "a"}, {"const": 1}]}) == []
