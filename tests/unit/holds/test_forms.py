"""Forms by themselves: what compiles, what is shown, what an answer must be."""

from __future__ import annotations

import string
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.holds.forms.money import amount_of
from holdfast.holds.forms.validate_answer import MAX_DATA, FilledForm, validate_answer
from holdfast.model.expressions import mapping_resolver
from holdfast.model.forms.compile import CompiledForm, compile_form
from holdfast.model.forms.field_kinds import KINDS
from holdfast.model.forms.json_schema import KEY, schema_of, sections_of
from holdfast.model.forms.render import confidence_of, render_form
from holdfast.model.forms.visible_text import show_invisible
from holdfast.model.hold_text import MAX_SHOWN, UnshowableError

CHOICE = {
    "type": "decision",
    "options": [{"id": "approve", "label": "Approve", "variant": "primary"}, "reject"],
}


def ask(*sections: dict[str, Any], **more: Any) -> dict[str, Any]:
    found = compile_form(list(sections), **more)
    assert found.problems == ()
    return render_form(found.form, mapping_resolver({}))


def field(**parts: Any) -> dict[str, Any]:
    return {"type": "input", "field": "x", **parts}


def answer(form: dict[str, Any], data: Any, decision: str = "approve", **context: Any) -> FilledForm:
    return validate_answer(form, context, decision, data)


def codes(filled: FilledForm) -> list[tuple[str, str]]:
    return [(error.field, error.code) for error in filled.errors]


@pytest.mark.covers("FM-1", "FM-4", "FM-5")
def test_author_is_reported_every_problem_with_its_path_when_a_form_is_wrong() -> None:
    found = compile_form(
        [
            {"type": "context", "content": "{{a b}}"},
            {"type": "input"},
            {"type": "picture"},
            field(min_length=-1, visible_if="y >"),
            field(),
            {"type": "decision", "options": []},
            {"type": "decision", "field": "second", "options": ["a", "a"]},
            "text",
        ]
    )
    assert [problem.partition(": ")[0] for problem in found.problems] == [
        "sections[0].content",
        "sections[1].field",
        "sections[2].type",
        "sections[3].visible_if",
        "sections[3].min_length",
        "sections[4].field",
        "sections[5].options",
        "sections[6].options[1].id",
        "sections[7]",
    ]


@pytest.mark.covers("FM-2", "FM-4")
def test_form_keeps_order_and_extras_and_asks_unknown_kinds_as_text() -> None:
    extras = {"confidence": "87%", "color": {"deep": [1]}}
    found = compile_form([field(field="b"), field(field="a", kind="hologram", extras=extras), CHOICE])
    assert [each.get("field") for each in found.form["sections"]] == ["b", "a", "decision"]
    assert found.form["sections"][0]["kind"] == found.form["sections"][1]["kind"] == "text"
    assert found.form["sections"][1]["extras"] == extras
    assert "hologram" in found.warnings[0]


@pytest.mark.covers("FM-3")
def test_context_is_never_part_of_an_answer() -> None:
    form = ask({"type": "context", "title": "Customer", "content": "c-1"}, field(), CHOICE)
    assert answer(form, {"x": "y"}).values == {"x": "y", "decision": "approve"}
    assert codes(answer(form, {"Customer": "c-2"})) == [("Customer", "unknown")]


@pytest.mark.covers("FM-5")
def test_first_decision_is_the_answers_own_and_the_others_are_required_choices() -> None:
    second = {"type": "decision", "field": "channel", "options": ["mail", "phone"]}
    form = ask({**CHOICE, "field": "verdict"}, second)
    assert answer(form, {"channel": "mail"}).values == {"verdict": "approve", "channel": "mail"}
    assert codes(answer(form, {})) == [("channel", "required")]
    assert codes(answer(form, {"channel": "fax", "verdict": "reject"})) == [
        ("verdict", "decision"),
        ("channel", "option"),
    ]


@pytest.mark.covers("FM-7", "HOLD-FORM-02")
def test_conditions_decide_what_is_asked_required_and_fixed() -> None:
    form = ask(
        field(field="reason", required_if="decision == 'reject'"),
        field(field="vip", kind="boolean", default=False),
        field(field="limit", kind="integer", visible_if="vip && context.tier == 'gold'", required=True),
        field(field="rate", kind="number", default=3, readonly_if="!vip"),
    )
    assert answer(form, {}).values == {"reason": None, "vip": False, "rate": 3}
    assert codes(answer(form, {}, "reject")) == [("reason", "required")]
    assert codes(answer(form, {"limit": 5})) == [("limit", "hidden")]
    assert codes(answer(form, {"rate": 4})) == [("rate", "readonly")]
    assert codes(answer(form, {"vip": True}, tier="gold")) == [("limit", "required")]
    assert answer(form, {"vip": True, "limit": 5, "rate": 4}, tier="gold").values["limit"] == 5
    assert codes(answer(form, {"vip": True, "limit": 5}, tier="silver")) == [("limit", "hidden")]


@pytest.mark.covers("FM-7")
def test_condition_that_reads_a_later_field_is_refused() -> None:
    found = compile_form([field(visible_if="later == 1"), field(field="later")])
    assert found.problems == ("sections[0].visible_if: reads 'later', which is not a field above it",)


@pytest.mark.covers("FM-8")
def test_default_is_returned_untouched_and_changes_are_listed_with_the_original() -> None:
    form = ask(
        field(field="amount", kind="currency", default=100),
        field(field="note", default="hi", original="hello"),
    )
    untouched = answer(form, {"amount": "100", "note": "hello"})
    assert (untouched.values, untouched.edited) == ({"amount": "100", "note": "hello"}, ())
    changed = answer(form, {"amount": 90})
    assert changed.values == {"amount": "90", "note": "hi"}
    assert [(e.field, e.original, e.final) for e in changed.edited] == [
        ("amount", "100", "90"),
        ("note", "hello", "hi"),
    ]


@pytest.mark.covers("RS-4")
def test_readonly_field_must_come_back_as_it_was_shown_and_strangers_are_refused() -> None:
    form = ask(field(kind="currency", default="100", readonly=True))
    assert answer(form, {}).values == answer(form, {"x": 100}).values == {"x": "100"}
    assert codes(answer(form, {"x": "100.01", "y": 1})) == [("x", "readonly"), ("y", "unknown")]
    assert answer(ask(field(), allow_extra=True), {"y": 1}).values == {"x": None, "y": 1}


@pytest.mark.covers("FM-9")
@pytest.mark.parametrize(
    ("said", "read"),
    [(0.87, 0.87), ("87%", 0.87), (87, 0.87), ("0.5", 0.5), (1, 1.0), (0, 0.0)]
    + [(bad, None) for bad in ("very", 101, -1, float("nan"), float("inf"), None, True, [], "1e999")],
)
def test_confidence_is_read_from_numbers_and_percentages_or_hidden(said: Any, read: float | None) -> None:
    assert confidence_of(said) == read
    form = render_form(compile_form([field(extras={"confidence": said})]).form)
    assert form["sections"][0].get("confidence") == read


@pytest.mark.covers("FM-10")
@pytest.mark.parametrize(
    ("given_", "locale", "amount"),
    [
        ("1.234,56", "de-DE", "1234.56"), ("1,234.56", "", "1234.56"), ("1 234,5", "fr", "1234.5"),
        (0.1, "", "0.1"), (0.30000000000000004, "", None), (5, "", "5"), ("-3", "", "-3"),
        ("1.234,56", "", None), ("1,2,3", "", None), ("12,34", "", None), ("1e5", "", None),
        ("", "", None), ("NaN", "", None), (float("inf"), "", None), (True, "", None), ("٣", "", None),
    ],
)  # fmt: skip
def test_money_is_read_by_locale_and_kept_as_decimal_text(given_: Any, locale: str, amount: Any) -> None:
    assert amount_of(given_, locale) == amount


@pytest.mark.covers("FM-10")
def test_amount_in_another_currency_than_asked_for_is_refused() -> None:
    form = ask(field(kind="currency", currency="EUR"))
    assert answer(form, {"x": {"amount": "5", "currency": "EUR"}}).values == {"x": "5"}
    assert codes(answer(form, {"x": {"amount": "5", "currency": "USD"}})) == [("x", "currency")]


SHA = "a" * 64
FILE = {"sha256": SHA, "size": 5, "name": "a.png", "media_type": "image/png"}
FITS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"kind": "text", "pattern": "^[a-z]+$"}, "abc", "ABC"),
    ({"kind": "text", "maxLength": 3}, "abc", "abcd"),
    ({"kind": "textarea"}, "a\nb", 5),
    ({"kind": "markdown"}, "# a", ["a"]),
    ({"kind": "code"}, "x = 1", {}),
    ({"kind": "diff"}, "-a\n+b", 1.5),
    ({"kind": "number", "min": 1, "max": 2, "step": 0.1}, 1.3, 1.35),
    ({"kind": "integer", "max": 5}, 5, 6),
    ({"kind": "integer"}, 5.0, 5.5),
    ({"kind": "percent", "max": 100}, "87%", "101%"),
    ({"kind": "currency", "min": "0.01"}, "0.01", "0"),
    ({"kind": "boolean"}, False, "false"),
    ({"kind": "select", "options": ["a", "b"]}, "a", "c"),
    ({"kind": "radio", "options": ["a", "b"]}, "a", ["a"]),
    ({"kind": "multiselect", "options": ["a", "b"]}, ["b", "a"], ["a", "a"]),
    ({"kind": "date", "min": "2026-01-01"}, "2026-01-01", "2025-12-31"),
    ({"kind": "datetime"}, "2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00"),
    ({"kind": "time", "max": "17:00"}, "16:59", "17:01"),
    ({"kind": "duration", "max": "1d"}, "24h", "25h"),
    ({"kind": "email"}, "dana@acme.example", "dana@"),
    ({"kind": "url"}, "https://acme.example/a", "javascript:alert(1)"),
    ({"kind": "phone"}, "+31 20 123 4567", "call me"),
    ({"kind": "file", "accept": ["image/*"], "max_size": 5}, FILE, {**FILE, "media_type": "text/html"}),
    ({"kind": "file", "max_size": 4}, {**FILE, "size": 4}, FILE),
    ({"kind": "file"}, FILE, {**FILE, "name": "../a"}),
    ({"kind": "json", "schema": {"type": "array"}}, [1], {"a": 1}),
    (
        {"kind": "table", "columns": ["name", {"field": "n", "kind": "integer", "required": True}]},
        [{"name": "a", "n": 1}],
        [{"name": "a", "n": "1"}],
    ),
    ({"kind": "user"}, "user:dana@acme", "dana smith"),
    ({"kind": "secret-reference"}, "prod/db-password", "hunter2 is my password"),
]


@pytest.mark.covers("HOLD-FORM-01")
@pytest.mark.parametrize(("parts", "good", "bad"), FITS)
def test_field_takes_what_fits_its_kind_and_refuses_the_rest(parts: Any, good: Any, bad: Any) -> None:
    form = ask(field(required=True, **parts))
    fine = answer(form, {"x": good})
    assert fine.errors == ()
    # What is kept fits again: reading is idempotent.
    assert answer(form, {"x": fine.values["x"]}).values == fine.values
    assert [name for name, _ in codes(answer(form, {"x": bad}))] == ["x"]
    assert codes(answer(form, {})) == codes(answer(form, {"x": None})) == [("x", "required")]


@pytest.mark.covers("HOLD-FORM-01")
def test_every_kind_has_a_case_above() -> None:
    assert {parts["kind"] for parts, _, _ in FITS} == KINDS


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", r"(\w+\s?)*$", "(a|ab|b)*$", "(x+x+)+y", "(a{1,3}){1,9}b", "[", "a" * 501],
)
def test_pattern_that_could_take_for_ever_is_refused(pattern: str) -> None:
    (problem,) = compile_form([field(pattern=pattern)]).problems
    assert problem.startswith("sections[0].pattern: ")


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z]+-[a-z]+-[0-9]+$",
        r"^\s*foo\s*$",
        "^[A-Z]{2}[0-9]{2}$",
        ".*",
        ".*.*",
        r"^\s*(x|\s*)\s*$",
        "a{2,}b?a+",
    ],
)
def test_pattern_that_is_quick_on_the_longest_text_is_taken(pattern: str) -> None:
    assert compile_form([field(pattern=pattern)]).problems == ()


@pytest.mark.covers("FM-12")
def test_sizes_are_bounded_with_a_clear_word() -> None:
    assert "at most 262,144 bytes" in compile_form([field(help="x" * 300_000)]).problems[0]
    assert "200 sections" in compile_form([{"type": "context"}] * 201).problems[0]
    form = ask(field(kind="json"))
    assert codes(answer(form, {"x": "y" * MAX_DATA})) == [("", "size")]
    deep: Any = 1
    for _ in range(21):
        deep = [deep]
    assert codes(answer(form, {"x": deep})) == [("", "depth")]
    assert codes(answer(form, [1])) == [("", "type")]


def rendered(text: Any, **values: Any) -> dict[str, Any]:
    found = compile_form([{"type": "context", "title": "T", "content": text}])
    assert found.problems == ()
    return render_form(found.form, mapping_resolver(values))


@pytest.mark.covers("TP-2")
def test_text_that_is_one_placeholder_keeps_the_type_and_null_is_empty_in_other_text() -> None:
    assert rendered("{{a}}", a=[1, {"b": 2}])["sections"][0]["content"] == [1, {"b": 2}]
    assert rendered("<{{a}}>", a=None)["sections"][0]["content"] == "<>"


def test_missing_variable_is_empty_and_reported_with_the_form() -> None:
    form = rendered("Hi {{name}}!")
    assert form["sections"][0]["content"] == "Hi !"
    assert form["warnings"] == ["sections[0].content: {{name}} has no value"]


@pytest.mark.covers("TP-4", "TP-6")
def test_what_was_filled_in_is_only_data() -> None:
    form = rendered("{{a}} {{b}}", a="{{b}}", b="<script>alert(1)</script>")
    assert form["sections"][0]["content"] == "{{b}} <script>alert(1)</script>"


@pytest.mark.covers("TP-5")
@pytest.mark.parametrize(
    "inside", ["a()", "a.__class__", "__import__", "a[0]", "a|nothing", "a + b", "'a' * 9"]
)
def test_placeholder_with_more_than_a_path_is_refused(inside: str) -> None:
    assert compile_form([{"type": "context", "content": "{{" + inside + "}}"}]).problems


@pytest.mark.covers("TP-7")
def test_labels_are_templates_and_ids_are_not() -> None:
    options = [{"id": "pay", "label": "Pay {{amount}}"}]
    found = compile_form([{"type": "decision", "options": options}])
    (option,) = render_form(found.form, mapping_resolver({"amount": 5}))["sections"][0]["options"]
    assert option == {"id": "pay", "label": "Pay 5", "variant": "secondary"}
    wrong = compile_form([{"type": "decision", "options": [{"id": "{{a}}", "label": "A"}]}])
    assert wrong.problems[0].startswith("sections[0].options[0].id")


@pytest.mark.covers("FM-12", "HOLD-SEC-07")
@pytest.mark.parametrize(
    "content", ["{{a}}", "{{a}}!", "{{a}}" * 1_000, ["{{b}}"] * 10_000, {"k": "{{b}}{{b}}"}]
)
def test_form_is_refused_when_it_has_more_than_can_be_shown(content: Any) -> None:
    with pytest.raises(UnshowableError, match=r"^sections\[0\]\.content") as caught:
        rendered(content, a="x" * (MAX_SHOWN + 1), b="y" * 40_000)
    assert "65,536" in str(caught.value)
    assert rendered("{{a}}", a="x" * MAX_SHOWN)["sections"][0]["content"] == "x" * MAX_SHOWN


def test_characters_that_nobody_sees_are_shown_by_their_number() -> None:
    assert show_invisible("pay \u202e001\u202c") == "pay \\u202e001\\u202c"
    assert show_invisible("a\u200bb") == "a\\u200bb"
    assert show_invisible("a\u200db") == "a\\u200db"
    assert show_invisible("👩\u200d🚀 नमस्ते é") == "👩\u200d🚀 नमस्ते é"
    assert rendered("{{a}}", a={"k": ["\ufeffx"]})["sections"][0]["content"] == {"k": ["\\ufeffx"]}


@pytest.mark.covers("HOLD-FORM-04")
def test_schema_becomes_a_form_and_the_form_a_schema_again() -> None:
    schema = {
        "type": "object",
        "properties": {
            "amount": {"type": "integer", "minimum": 1, "title": "Amount", "description": "In cents"},
            "when": {"type": "string", "format": "date"},
            "size": {"enum": ["s", "l"]},
            "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}], "default": None},
            "lines": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["amount", "size"],
    }
    form = ask(*sections_of(schema))
    kinds = {each["field"]: each["kind"] for each in form["sections"]}
    assert kinds == {"amount": "integer", "when": "date", "size": "select", "note": "text", "lines": "json"}
    out = schema_of(form)
    assert out["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert out["required"] == ["amount", "size"]
    amount = {"type": "integer", "minimum": 1, "title": "Amount", "description": "In cents"}
    assert out["properties"]["amount"] == amount
    assert out["properties"]["size"]["enum"] == ["s", "l"]
    assert out["properties"]["lines"] == {"type": "array", "items": {"type": "object"}}
    assert out[KEY] == form


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["type", "field", "kind", "options", "default", "required", "visible_if", "min", "max", "step", "pattern",
     "columns", "schema", "label", "content", "extras", "min_length", "currency", "accept", "max_size"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["context", "input", "decision", "a", "b", "a == 1", "{{a}}", "{{", "[", *sorted(KINDS)]
)
SECTIONS = st.lists(st.dictionaries(KEYS, WORDS | JSON | st.just(["a", "b"]), max_size=8) | JSON, max_size=4)


def test_a_kind_that_is_not_text_is_asked_as_text() -> None:
    found = compile_form([{"type": "input", "field": "x", "kind": ["a", "b"]}])
    assert not found.problems
    assert "is not a kind of field; it is asked as text" in found.warnings[0]


@pytest.mark.covers("HOLD-FORM-01")
@settings(max_examples=150, deadline=2_000)
@given(SECTIONS, JSON, st.dictionaries(st.sampled_from(["a", "b", "x"]), JSON, max_size=3))
def test_nothing_that_is_written_or_answered_breaks_a_form(sections: Any, state: Any, data: Any) -> None:
    found: CompiledForm = compile_form(sections)
    if found.problems:
        return
    form = msgspec.json.decode(msgspec.json.encode(render_form(found.form, mapping_resolver({"a": state}))))
    filled = validate_answer(form, {}, "approve", msgspec.json.decode(msgspec.json.encode(data)))
    asked = {each["field"] for each in form["sections"] if each["type"] != "context"}
    assert filled.errors or filled.values.keys() <= asked
    schema_of(form)


@pytest.mark.covers("HOLD-FORM-01")
@settings(max_examples=200, deadline=2_000)
@given(st.sampled_from([parts for parts, _, _ in FITS]), JSON | st.text(string.printable, max_size=20))
def test_field_of_any_kind_takes_or_refuses_any_value_and_never_breaks(parts: Any, value: Any) -> None:
    form = ask(field(required=True, **parts))
    filled = answer(form, {"x": msgspec.json.decode(msgspec.json.encode(value))})
    assert bool(filled.errors) != ("x" in filled.values)
