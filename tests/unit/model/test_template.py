from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from holdfast.model.expressions import mapping_resolver, partition_resolver
from holdfast.model.template import TemplateRenderError, TemplateSyntaxError, compile_template

VALUES = {
    "amount": 250,
    "customer": {"name": "Ann", "tags": ["x", "y"]},
    "nothing": None,
    "flag": True,
    "price": Decimal("1.50"),
    "at": datetime(2026, 5, 4, 12, tzinfo=UTC),
    "raw": b"\x00\x01",
    "evil": "{{amount}}",
    "html": "<b>&</b>",
}


def render(text: str) -> object:
    return compile_template(text).render(mapping_resolver(VALUES)).value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("Refund {{amount}} to {{customer.name}}?", "Refund 250 to Ann?"),
        ("{{ amount }}!", "250!"),
        ("{{customer.tags.1}}{{amount}}", "y250"),
        ("[{{nothing}}]", "[]"),
        ("{{flag}}/{{price}}", "true/1.50"),
        ("{{customer}}.", '{"name":"Ann","tags":["x","y"]}.'),
        ("at {{at}}", "at 2026-05-04T12:00:00+00:00"),
        ("{{raw}}:", "AAE=:"),
        ("{{html}} ", "<b>&</b> "),
        ("a }} b { c } {", "a }} b { c } {"),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        (r"\{{amount}}", "{{amount}}"),
        (r"\\{{amount}}", r"\250"),
        (r"\\\{{amount}}", r"\{{amount}}"),
        (r"C:\dir\{{x {{amount}}", r"C:\dir{{x 250"),
        (r"a\nb {{amount}}", r"a\nb 250"),
    ],
)
def test_template_gives_text_when_mixed(text, expected):
    assert render(text) == expected


@pytest.mark.parametrize("name", ["amount", "customer", "nothing", "flag", "price", "raw"])
def test_template_keeps_native_value_when_it_is_one_placeholder(name):
    assert render("{{" + name + "}}") is VALUES[name]
    assert isinstance(render("{{" + name + "}} "), str)


class Level(Enum):
    high = 2


class Grade(IntEnum):
    top = 1


class Colour(StrEnum):
    red = "r"


@dataclass(frozen=True)
class Place:
    street: str
    level: int


class Town(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Level.high, "high"),
        (Grade.top, "1"),
        (Colour.red, "r"),
        (Place("s", 2), '{"level":2,"street":"s"}'),
        ([Place("s", 2)], '[{"street":"s","level":2}]'),
        (Town(name="t"), '{"name":"t"}'),
        ([Town(name="t")], '[{"name":"t"}]'),
    ],
)
def test_template_reads_like_data_when_a_value_is_of_a_type_of_its_own(value, text):
    assert compile_template("{{v}}!").render(mapping_resolver({"v": value})).value == f"{text}!"


def test_template_leaves_output_alone_when_it_looks_like_a_template():
    assert render("{{evil}}") == "{{amount}}"
    assert render("> {{evil}}") == "> {{amount}}"


def test_template_lists_missing_paths_when_not_strict():
    rendered = compile_template("{{a.b}}-{{amount}}-{{c}}-{{a.b}}").render(mapping_resolver(VALUES))
    assert rendered.value == "-250--"
    assert rendered.missing == (("a", "b"), ("c",))
    alone = compile_template("{{gone}}").render(mapping_resolver(VALUES))
    assert (alone.value, alone.missing) == ("", (("gone",),))


def test_template_names_path_when_strict_and_missing():
    with pytest.raises(TemplateRenderError, match=r"\{\{customer\.age\}\} at column 7") as caught:
        compile_template("Age {{customer.age}}").render(mapping_resolver(VALUES), strict=True)
    assert caught.value.path == ("customer", "age")
    assert caught.value.column == 7


def test_template_does_not_count_null_as_missing_when_strict():
    rendered = compile_template("<{{nothing}}>").render(mapping_resolver(VALUES), strict=True)
    assert (rendered.value, rendered.missing) == ("<>", ())


def test_template_names_path_when_value_has_no_text():
    class Mute:
        def __str__(self) -> str:
            raise ValueError("no words")

    with pytest.raises(TemplateRenderError, match=r"\{\{m\}\}.*no words"):
        compile_template("say {{m}}").render(mapping_resolver({"m": Mute()}))


def test_template_reads_partitions_when_resolver_has_them():
    resolve = partition_resolver({"scratch": {"a": 1}, "input": {"a": 2}})
    assert compile_template("{{a}} {{input.a}} {{state.a}}").render(resolve).value == "1 2 1"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("{{", 1),
        ("Hi {{name", 4),
        ("{{}}", 3),
        ("{{  }}", 5),
        ("{{a()}}", 4),
        ("{{a[0]}}", 4),
        ("{{ a['x'] }}", 5),
        ("{{a|uper}}", 5),
        ("{{a b}}", 4),
        ("{{a.}}", 4),
        ("{{.a}}", 3),
        ("{{a..b}}", 4),
        ("{{a.1x}}", 6),
        ("{{0}}", 3),
        ("{{'x'}}", 3),
        ("{{{a}}}", 3),
        ("{{__class__}}", 3),
        ("ok {{a.__class__.x}}", 8),
        ("{{a.__x}}", 5),
        ("{{ok}} {{a + 1}}", 11),
        ("{{a {{b}}", 4),
    ],
)
def test_compiler_points_at_fault_when_placeholder_is_not_a_path(text, column):
    with pytest.raises(TemplateSyntaxError) as caught:
        compile_template(text)
    assert caught.value.column == column
    assert caught.value.text == text
    assert caught.value.hint


def test_template_lists_names_when_compiled():
    assert compile_template("{{a.b}} {{c}} {{a.b}}").names == {("a", "b"), ("c",)}
    assert compile_template("none").names == frozenset()
    assert compile_template("{{a}}") == compile_template("{{a}}") != compile_template("{{ a }}")


def escaped(plain: str) -> str:
    """Backslashes double only where they touch two braces, which is all that the escape rule looks at."""
    head, found, tail = plain.partition("{{")
    if not found:
        return plain
    kept = head.rstrip("\\")
    return kept + "\\" * (2 * (len(head) - len(kept)) + 1) + "{{" + escaped(tail)


@given(st.text(st.sampled_from("{}\\a .") | st.characters(), max_size=20))
def test_template_gives_any_text_back_when_escaped(plain):
    assert compile_template(escaped(plain)).render(mapping_resolver({})).value == plain


@given(st.text(st.sampled_from("{}\\ab._0 "), max_size=20))
def test_compiler_answers_cleanly_when_text_is_arbitrary(text):
    with contextlib.suppress(TemplateSyntaxError):
        template = compile_template(text)
        assert set(template.render(mapping_resolver({})).missing) == template.names


@given(st.lists(st.integers() | st.text(), min_size=2, max_size=5))
def test_template_joins_values_in_order_when_several(values):
    text = "".join(f"{{{{v.{i}}}}}" for i in range(len(values)))
    rendered = compile_template(text).render(mapping_resolver({"v": values}), strict=True)
    assert rendered.value == "".join(map(str, values))
