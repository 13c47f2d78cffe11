"""Filters of placeholders. Every filter has rows here: a new one fails until it has them."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.expressions import mapping_resolver
from holdfast.model.template import TemplateRenderError, TemplateSyntaxError, compile_template
from holdfast.model.template_filters import FILTERS

VALUES = {
    "name": "  Ann  ",
    "tags": ["x", "y", 3],
    "empty": [],
    "nothing": None,
    "price": Decimal("2.345"),
    "half": 2.5,
    "count": 1234,
    "flag": True,
    "record": {"b": 1, "a": "ü"},
    "at": datetime(2026, 5, 4, 12, 30, tzinfo=UTC),
    "day": date(2026, 5, 4),
    "iso": "2026-05-04T12:30:00Z",
    "long": "abcdefghij",
}
ROWS: list[tuple[str, object]] = [
    ("{{gone | default('none')}}", "none"),
    ("{{nothing | default(0)}}", 0),
    ("{{count|default('none')}}", 1234),
    ("{{empty | first | default('none')}}!", "none!"),
    ("a {{gone | default('}} | ')}} b", "a }} |  b"),
    ('{{gone | default("it\'s")}}', "it's"),
    ("{{name | upper}}", "  ANN  "),
    ("{{name | lower}}", "  ann  "),
    ("{{name | trim | upper}}", "ANN"),
    ("{{flag | upper}}", "TRUE"),
    ("{{tags | length}}", 3),
    ("{{record | length}}", 2),
    ("{{long | length}}", 10),
    ("{{tags | first}}", "x"),
    ("{{tags | last}}", 3),
    ("{{long | last}}", "j"),
    ("{{tags | join}}", "x, y, 3"),
    ("{{tags | join('')}}", "xy3"),
    ("{{record | json}}", '{"a":"ü","b":1}'),
    ("{{long | json}}", '"abcdefghij"'),
    ("{{half | round}}", 3),
    ("{{price | round(2)}}", Decimal("2.35")),
    ("{{count | round(2)}}", 1234),
    ("{{at | date}}", "2026-05-04"),
    ("{{at | date('%d.%m.%Y %H:%M')}}", "04.05.2026 12:30"),
    ("{{day | date}}", "2026-05-04"),
    ("{{iso | date('%H')}}", "12"),
    ("{{long | truncate(4)}}", "abc…"),
    ("{{long | truncate(4, '')}}", "abcd"),
    ("{{long | truncate(10)}}", "abcdefghij"),
    ("{{name | trim | lower | truncate(2, '.') | json}}", '"a."'),
]


@pytest.mark.covers("SAFE-CHECK-13")
@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_filter_changes_what_is_shown(text: str, expected: object) -> None:
    found = compile_template(text).render(mapping_resolver(VALUES), strict=True).value
    assert (found, type(found)) == (expected, type(expected))


def test_every_filter_has_a_row() -> None:
    assert {name for name in FILTERS if any(f"| {name}" in text for text, _ in ROWS)} == set(FILTERS)


@pytest.mark.covers("SAFE-CHECK-13")
@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("{{a | upr}}", 7, "expected a filter, found 'upr'"),
        ("{{a | }}", 6, "expected a filter, found the end"),
        ("{{a | upper lower}}", 13, "expected | before a filter"),
        ("{{a | default}}", 7, "default: it takes 1 arguments, not 0"),
        ("{{a | default(b)}}", 15, "expected a text, number"),
        ("{{a | default('x'}}", 18, "expected ',' or ')'"),
        ("{{a | default('x}}", 15, "unexpected"),
        ("{{a | upper('x')}}", 7, "upper: it takes 0 arguments"),
        ("{{a | round('2')}}", 7, "round: '2' is not a whole number"),
        ("{{a | truncate(0)}}", 7, "truncate: 0 is not a whole number"),
        ("{{a | trim | trim | trim | trim | trim}}", 4, "5 filters"),
        ("{{a || upper}}", 5, "expected | before a filter"),
        ("{{a | default(')')", 1, "never closed"),
    ],
)
def test_compiler_points_at_the_fault_of_a_filter(text: str, column: int, problem: str) -> None:
    with pytest.raises(TemplateSyntaxError) as caught:
        compile_template(text)
    assert problem in str(caught.value)
    assert caught.value.column == column


@pytest.mark.parametrize(
    "text",
    [
        "{{count | length}}",
        "{{count | first}}",
        "{{long | join}}",
        "{{long | round}}",
        "{{long | date}}",
        "{{flag | round}}",
    ],
)
def test_filter_says_why_it_does_not_apply(text: str) -> None:
    with pytest.raises(TemplateRenderError, match="cannot be applied: "):
        compile_template(text).render(mapping_resolver(VALUES))


@pytest.mark.parametrize("name", [name for name in FILTERS if name not in ("default", "truncate")])
def test_missing_value_stays_missing_when_a_filter_has_no_default(name: str) -> None:
    found = compile_template(f"[{{{{gone | {name}}}}}]").render(mapping_resolver(VALUES))
    assert (found.value, found.missing) == ("[]", (("gone",),))


def test_template_knows_which_names_may_be_missing() -> None:
    found = compile_template("{{a}} {{b | default(1)}} {{c | upper}} {{b}}")
    assert found.names == {("a",), ("b",), ("c",)}
    assert found.required == {("a",), ("b",), ("c",)}
    assert compile_template("{{a}} {{b | default(1)}}").required == {("a",)}


@given(st.text(alphabet="{}|'\"\\ab(),1 default", max_size=40))
def test_any_text_is_a_template_or_a_syntax_error(text: str) -> None:
    with contextlib.suppress(TemplateSyntaxError):
        assert compile_template(text).render(mapping_resolver({"a": 1, "b": "x"})) is not None
