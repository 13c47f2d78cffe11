from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

import msgspec
import pytest

from holdfast.errors import MissingNameError, NotComparableError
from holdfast.model.expressions import (
    MISSING,
    compile_expr,
    mapping_resolver,
    partition_resolver,
    truthy,
    walk,
)

STATE = {
    "amount": 250,
    "zero": 0,
    "price": Decimal("99.99"),
    "ratio": 0.5,
    "decision": "approve",
    "plan": "pro",
    "vip": False,
    "flag": True,
    "off": False,
    "nothing": None,
    "empty": "",
    "tags": ["a", "b"],
    "pair": (1, 2),
    "order": {"lines": [{"sku": "x1"}, {"sku": "x2"}], "7": "seven", "total": 12.5},
    "by_number": {3: "three"},
    "today": date(2026, 5, 4),
    "at": datetime(2026, 5, 4, tzinfo=UTC),
    "naive": datetime(2026, 5, 4),  # noqa: DTZ001
    "wait": timedelta(hours=1),
    "nan": float("nan"),
    "signalling": Decimal("sNaN"),
    "frozen": MappingProxyType({"k": (1, 2)}),
    "set": frozenset({"a", 1}),
}


def evaluate(text: str, values: dict[str, object] = STATE) -> object:
    return compile_expr(text).evaluate(mapping_resolver(values))


def lenient(text: str) -> object:
    return compile_expr(text).lenient(mapping_resolver(STATE))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amount > 100 && (decision == 'approve' || vip)", True),
        ("amount > 100 and (decision == 'reject' or vip)", False),
        ("amount >= 250", True),
        ("amount <= 249.5", False),
        ("amount < 251", True),
        ("amount == 250.0", True),
        ("amount === 250.0", True),
        ("amount != 250", False),
        ("amount !== 251", True),
        ("ratio == 0.5", True),
        ("-1 < zero", True),
        ("amount > -5", True),
        ("1e2 < amount", True),
        ("plan === 'a||b'", False),
        ("'pro' === 'a||b'", False),
        ("'a && b' == 'a && b'", True),
        ("'x ? y : z' == plan", False),
        ('plan == "pro"', True),
        (r"'it\'s' == \"it's\"".replace(r"\"", '"'), True),
        (r"'\u0041\x42\n' == 'AB" + "\n'", True),
        (r"'\ud83d\ude00' == '😀'", True),
        ("order.lines.1.sku == 'x2'", True),
        ("order.7 == 'seven'", True),
        ("by_number.3 == 'three'", True),
        ("frozen.k.0 == 1", True),
        ("nothing == null", True),
        ("nothing === None", True),
        ("flag == true", True),
        ("flag === True", True),
        ("off == False", True),
        ("[1, 2] == pair", True),
        ("frozen == frozen", True),
        ("today == today", True),
        ("at >= at", True),
        ("wait > wait", False),
    ],
)
@pytest.mark.covers("G-21")
def test_expression_gives_expected_value_when_operands_exist(text, expected):
    assert evaluate(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a || b && c", "a || b && c"),
        ("(a || b) && c", "(a || b) && c"),
        ("a && (b && c)", "a && b && c"),
        ("(a || b) || c", "a || b || c"),
        ("!a == b", "!a == b"),
        ("not a == b", "!(a == b)"),
        ("not a and not b in c", "!a && !(b in c)"),
        ("a not in [1,'x' , null]", "a not in [1, 'x', null]"),
        ("a?b:c?d:e", "a ? b : c ? d : e"),
        ("(a ? b : c) ? d : e", "(a ? b : c) ? d : e"),
        ("(a == b) != c", "(a == b) != c"),
        ("((a))", "a"),
        ('"it\'s" == True', r"'it\'s' == true"),
        ("'\u2028\x01'", r"'\u2028\u0001'"),
        ("1.0 == 1", "1.0 == 1"),
        ("1E5", "100000.0"),
        ("input.in.not.0", "input.in.not.0"),
        ("exists( a.b )and not exists(c)", "exists(a.b) && !exists(c)"),
        ("exists == default", "exists == default"),
        ("(a|default( 'x' )) == b", "a | default('x') == b"),
        ("!a | default(b | default(1) || c)", "!a | default(b | default(1) || c)"),
    ],
)
def test_expression_prints_canonically_when_turned_into_text(text, expected):
    assert str(compile_expr(text)) == expected
    assert compile_expr(expected) == compile_expr(text)


@pytest.mark.parametrize("text", ["flag == 0", "off == amount", "[1] == [true]", "true in [0, 5]"])
def test_boolean_equals_no_number_when_compared(text):
    assert evaluate(text) is False


@pytest.mark.parametrize(
    "text",
    [
        "1 == true", "true == 1", "0 === false", "flag == 1", "flag != 1", "off == zero", "true in [1, 0]",
        "true in set", "'1' == 1", "1 !== '1.0'", "' 1e0' == 1", "amount == '250'",
        "'250' not in [1, amount]", "'3' in by_number", "flag == 'true'", "'False' in [off]", "0.1 == '0.1'",
    ],
)  # fmt: skip
def test_comparison_stops_when_values_differ_only_in_their_types(text):
    with pytest.raises(NotComparableError, match="have different types"):
        evaluate(text)
    assert lenient(text) is ("!" in text or "not" in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("'4' == 3", False), ("'x' != 3", True), ("null == ''", False), ("'1' in [1, '1']", True),
     ("'yes' == true", False), ("'nan' == nan", False)],
)  # fmt: skip
def test_comparison_is_answered_when_a_text_is_not_the_other_value(text, expected):
    assert evaluate(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "'a' > 3",
        "3 < 'a'",
        "plan >= 1",
        "nothing < 1",
        "true > 0",
        "flag >= off",
        "tags > tags",
        "order < 1",
        "today < at",
        "at < today",
        "naive < at",
        "signalling > 1",
    ],
)
def test_order_is_an_error_when_values_have_none(text):
    with pytest.raises(NotComparableError, match="have no order"):
        evaluate(text)
    assert lenient(text) is False


def test_order_error_shows_types_only_when_values_may_be_secret():
    with pytest.raises(NotComparableError) as caught:
        evaluate("plan > nothing")
    assert caught.value.message == "a text and null have no order"


@pytest.mark.parametrize("text", ["nan > 0", "nan == nan", "signalling == 1", "'one' == 1"])
def test_comparison_is_false_when_values_are_not_equal_or_ordered(text):
    assert evaluate(text) is False


def test_float_literal_equals_decimal_when_written_alike():
    assert evaluate("price == 99.99") is True
    assert evaluate("price > 99.99") is False
    assert evaluate("99.99 <= price") is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gone == 1", False),
        ("gone > 1", False),
        ("gone <= 1", False),
        ("gone == 'x'", False),
        ("gone == null", True),
        ("null == gone", True),
        ("gone != null", False),
        ("gone === null", False),
        ("gone !== null", True),
        ("gone != 1", True),
        ("gone !== 1", True),
        ("gone == lost", False),
        ("gone != lost", True),
        ("gone in ['x']", False),
        ("gone in [lost]", False),
        ("gone not in ['x']", True),
        ("'x' in gone", False),
        ("'x' not in gone", True),
        ("!gone", True),
        ("gone || flag", True),
        ("gone && flag", False),
        ("gone ? 1 : 2", 2),
        ("order.lines.9.sku == 'x1'", False),
        ("plan.0 == 'p'", False),
        ("amount.real == 250", False),
        ("tags.__class__ != null", False),
    ],
)
@pytest.mark.covers("SAFE-CHECK-10")
def test_missing_path_is_an_error_when_evaluated_except_by_the_earlier_rule(text, expected):
    with pytest.raises(MissingNameError, match="has no value"):
        evaluate(text)
    assert lenient(text) == expected
    assert type(lenient(text)) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exists(gone)", False),
        ("exists(order.lines.9)", False),
        ("exists(nothing)", True),
        ("exists(amount) && amount > 100", True),
        ("exists(gone) && gone > 100", False),
        ("!exists(gone) || gone > 100", True),
        ("exists(gone) ? gone : 2", 2),
        ("gone | default(3) > 2", True),
        ("amount | default(3) > 200", True),
        ("nothing | default(3) == null", True),
        ("gone | default(lost | default('x')) in ['x']", True),
        ("!gone | default(true)", False),
        ("amount > 100 || gone", True),
        ("amount < 100 && gone", False),
    ],
)
@pytest.mark.covers("SAFE-CHECK-10")
def test_expression_gives_a_value_when_it_says_what_may_be_missing(text, expected):
    assert evaluate(text) == expected
    assert type(evaluate(text)) is type(expected)
    assert lenient(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("decision in ['approve', 'escalate']", True),
        ("decision not in ['approve']", False),
        ("'a' in tags", True),
        ("'c' in tags", False),
        ("2.0 in pair", True),
        ("'ro' in plan", True),
        ("1 in plan", False),
        ("'total' in order", True),
        ("3 in by_number", True),
        ("1 in set", True),
        ("tags in [tags]", True),
        ("1 in amount", False),
        ("nothing in [null]", True),
        ("'a' in []", False),
    ],
)
def test_membership_follows_equality_when_container_is_listed_or_read(text, expected):
    assert evaluate(text) is expected


def test_ternary_returns_raw_value_when_branches_are_not_boolean():
    assert evaluate("amount > 100 ? 'manager' : 'auto'") == "manager"
    assert evaluate("off ? 1 : tags") == ["a", "b"]
    assert evaluate("flag ? (off ? 1 : 2) : 3") == 2


def test_logic_gives_boolean_when_operands_are_other_values():
    assert evaluate("plan || off") is True
    assert evaluate("plan && amount") is True
    assert evaluate("empty || zero") is False


def test_logic_stops_reading_when_result_is_known():
    asked: list[tuple[str, ...]] = []

    def resolve(path):
        asked.append(path)
        return path == ("a",)

    assert compile_expr("a || b").evaluate(resolve) is True
    assert compile_expr("c && d").evaluate(resolve) is False
    assert compile_expr("a ? e : f").evaluate(resolve) is False
    assert asked == [("a",), ("c",), ("a",), ("e",)]


def test_bare_path_returns_missing_when_it_leads_nowhere_by_the_earlier_rule():
    assert lenient("gone") is MISSING
    assert not truthy(MISSING)
    assert lenient("[gone, 1]") == [None, 1]


def test_truth_is_false_when_value_refuses_to_have_one():
    class Undecided:
        def __bool__(self):
            raise ValueError("ambiguous")

    assert truthy(Undecided()) is False
    assert [truthy(v) for v in (0, "", [], {}, None, 1, "x", [0])] == [False] * 5 + [True] * 3


def test_comparison_reports_fault_when_lazy_value_cannot_be_loaded():
    class Lazy(dict):
        def get(self, key, default=None):
            raise OSError("blob missing")

    with pytest.raises(OSError, match="blob missing"):
        evaluate("order.total == 1", {"order": Lazy()})


def test_equality_is_false_when_data_contains_itself():
    loop: list[object] = []
    loop.append(loop)
    other: list[object] = []
    other.append(other)
    assert evaluate("a == b", {"a": loop, "b": other}) is False


def test_list_result_is_fresh_when_evaluated_twice():
    expr = compile_expr("[1, 2]")
    first = expr.evaluate(mapping_resolver({}))
    assert isinstance(first, list)
    first.append(3)
    assert expr.evaluate(mapping_resolver({})) == [1, 2]


def test_names_list_every_path_when_expression_reads_several():
    expr = compile_expr("a.b > 1 && (x in [y, input.z] ? !q : 'w')")
    assert expr.names == {("a", "b"), ("x",), ("y",), ("input", "z"), ("q",)}


def test_partition_resolver_reads_scratch_then_input_when_name_is_bare():
    resolve = partition_resolver(
        {
            "scratch": {"a": 1, "input": "shadow", "o": {"x": 1}, "none": None},
            "input": {"a": 2, "b": 3, "o": {"y": 2}, "none": 5},
            "artifacts": {"doc": {"title": "T"}},
        }
    )
    found = {
        "a": 1,
        "b": 3,
        "state.a": 1,
        "state.input.a": 2,
        "input.b": 3,
        "scratch.input": "shadow",
        "artifacts.doc.title": "T",
        "none": None,
        "o.x": 1,
    }
    for text, value in found.items():
        assert resolve(tuple(text.split("."))) == value
    for text in ("o.y", "memory.x", "memory", "state", "gone", "state.gone", "a.b"):
        assert resolve(tuple(text.split("."))) is MISSING


@pytest.mark.covers("G-21", "E20")
def test_state_prefix_reads_partitions_when_written_as_documented():
    resolve = partition_resolver({"scratch": {"plan": "pro"}, "input": {}})
    assert compile_expr("state.scratch.plan === 'pro' ? 'fast' : 'slow'").evaluate(resolve) == "fast"
    assert compile_expr("state.plan == 'pro'").evaluate(resolve) is True


def test_name_stays_lookup_when_it_looks_like_an_attribute():
    class Holder:
        secret = 1

    assert evaluate("exists(h.secret)", {"h": Holder()}) is False
    assert evaluate("items.0", {"items": [7]}) == 7
    assert evaluate("exists(items.01234567890123456789)", {"items": [7]}) is False


def test_path_reads_declared_fields_when_value_is_a_record():
    @dataclass(frozen=True)
    class Customer:
        name: str

        @property
        def password(self) -> str:
            return "x"

    class Line(msgspec.Struct, frozen=True):
        sku: str

    values: dict[str, object] = {"c": Customer("Ada"), "lines": [Line("x1")]}
    assert evaluate("c.name == 'Ada' && lines.0.sku == 'x1'", values) is True
    assert (
        evaluate("exists(c.password) || exists(c.__class__) || exists(lines.0.__struct_fields__)", values)
        is False
    )
    assert walk(values["c"], ("name",), records=False) is MISSING
