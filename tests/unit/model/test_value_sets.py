"""A misspelt option is found in whatever shape the comparison has, and nothing else is.

The matrix goes over every kind of expression and every operator: a new kind, or a new operator, fails here
until it has a row.
"""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.diagnostics import Severity
from holdfast.model.expressions import compile_expr, truthy
from holdfast.model.expressions.compile import _EQUALITY, _LENIENT  # pyright: ignore[reportPrivateUsage]
from holdfast.model.expressions.nodes import Comparison, Node
from holdfast.model.graph import Edge, EdgeKind, GraphSpec, HoldSpec, NodeKind
from holdfast.model.graph import Node as GraphNode
from holdfast.model.validate import validate
from holdfast.types.hold import Option

OPTIONS = ("approve", "reject")
SLIPS = {"unknown-option", "unknown-outcome", "unknown-value", "type-mismatch", "constant-operand"}


def a_graph(condition: str, **more: Any) -> GraphSpec:
    hold = HoldSpec(prompt="?", options=tuple(Option(each, each) for each in OPTIONS))
    nodes = [
        GraphNode(id="ask", kind=NodeKind.hold, hold=hold),
        *(GraphNode(id=name) for name in ("pay", "close")),
    ]
    edges = [
        Edge(id="ask->pay", source="ask", target="pay", kind=EdgeKind.when, when=condition),
        Edge(id="ask->close", source="ask", target="close", kind=EdgeKind.otherwise),
    ]
    return GraphSpec(name="g", nodes=tuple(nodes), edges=tuple(edges), start=("ask",), **more)


def slips(condition: str, severity: Severity = Severity.error, **more: Any) -> set[str]:
    return {
        p.rule for p in validate(a_graph(condition, **more)) if p.severity is severity and p.rule in SLIPS
    }


# How a value can be wrapped: {} is the decision on one side, and the literal on the other.
WRAPPED: dict[str, tuple[str, ...]] = {
    "Literal": ("{}",),
    "Name": ("{}",),
    "Items": ("[{}]", "['x', {}]", "[[{}], 3]"),
    "Choose": ("(input.a ? {} : {})", "(input.a ? [{}] : [{}])"),
}
DEFAULTED = "decision | default('none') != 'rejct'"
# Kinds that are no value to compare with, with the row that covers them.
TRUTHS = {
    "Not": "(!{}) {op} 'rejct'",
    "AllOf": "(input.a && {} == 'approve') {op} 'rejct'",
    "AnyOf": "(input.a || {} == 'approve') {op} 'rejct'",
    "Comparison": "({} == 'approve') {op} 'rejct'",
    "Exists": "exists({}) {op} 'rejct'",
}


def test_every_kind_of_expression_is_in_the_matrix() -> None:
    assert {kind.__name__ for kind in get_args(Node)} == {*WRAPPED, *TRUTHS, "Default"}


def test_every_operator_is_in_the_matrix() -> None:
    assert set(_EQUALITY) == {*EQUALS, "in", "not in"}
    assert set(_LENIENT) == {*_EQUALITY, *ORDERS}


EQUALS = ("==", "!=", "===", "!==")
ORDERS = ("<", "<=", ">", ">=")
WRAPS = [wrap for wraps in WRAPPED.values() for wrap in wraps]


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("operator", EQUALS)
def test_wrong_option_is_found_when_both_sides_are_wrapped(wrap: str, operator: str) -> None:
    decided = wrap.replace("{}", "decision")
    for literal, expected in (("'rejct'", {"unknown-option"}), ("'reject'", set[str]())):
        written = wrap.replace("{}", literal)
        assert slips(f"{decided} {operator} {written}") == expected
        assert slips(f"{written} {operator} {decided}") == expected


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("operator", ["in", "not in"])
def test_wrong_option_is_found_when_it_is_in_a_list(wrap: str, operator: str) -> None:
    decided = wrap.replace("{}", "decision")
    for literal, expected in (("'rejct'", {"unknown-option"}), ("'reject'", set[str]())):
        written = wrap.replace("{}", literal)
        approve = wrap.replace("{}", "'approve'")
        assert slips(f"{decided} {operator} [{approve}, {written}]") == expected
        assert slips(f"{written} {operator} [{decided}]") == expected
        assert slips(f"{decided} {operator} (input.a ? [{written}] : [{approve}])") == expected


@pytest.mark.parametrize("operator", [*EQUALS])
@pytest.mark.parametrize("kind", TRUTHS)
def test_comparison_with_a_text_is_refused_when_the_other_side_is_true_or_false(
    kind: str, operator: str
) -> None:
    assert slips(TRUTHS[kind].replace("{op}", operator).replace("{}", "decision"))


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        ("(input.a ? decision : 'x') != 'rejct'", "unknown-option"),
        (DEFAULTED, "unknown-option"),
        ("decision != ''", "unknown-option"),
        ("decision != null", "unknown-option"),
        ("state.decision != 'rejct'", "unknown-option"),
        ("decision_result.decision != 'rejct'", "unknown-option"),
        ("'decision' != 'reject'", "constant-operand"),
        ("['decision'] != ['reject']", "constant-operand"),
        ("[decision]", "constant-operand"),
        ("outcome != 'fial'", "unknown-outcome"),
        ("outcome in ['success', 'sucess']", "unknown-outcome"),
        ("[outcome] == ['done']", "unknown-outcome"),
        ("decision == [decision]", "unknown-option"),
    ],
)
def test_slip_is_found(condition: str, rule: str) -> None:
    assert slips(condition) == {rule}


@pytest.mark.parametrize(
    "condition",
    [
        "decision == input.wanted",
        "decision in input.allowed",
        "[decision, input.a] == ['reject', 'anything']",
        "(input.a ? decision : 'none') == 'none'",
        "decision | default('none') == 'none'",
        "outcome == 'success' && decision != 'reject'",
        "outcome == input.word",
        "artifacts.decision == 'anything'",
        "(input.a ? decision : input.b) == 'anything'",
        "true",
    ],
)
def test_nothing_is_claimed_when_it_can_hold(condition: str) -> None:
    assert slips(condition) == set()


VALUES = st.sampled_from(["decision", "'approve'", "'reject'", "'rejct'", "'x'", "input.a"])
SHAPES = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"[{two[0]}, {two[1]}]"),
        inner.map(lambda one: f"[{one}]"),
        st.tuples(inner, inner).map(lambda two: f"(input.b ? {two[0]} : {two[1]})"),
    ),
    max_leaves=4,
)
CASES = [
    {("decision",): decision, ("input", "a"): a, ("input", "b"): b}
    for decision, a, b in product(OPTIONS, ["reject", "rejct", "x", 3], [True, False])
]


@pytest.mark.covers("SAFE-CHECK-06")
@settings(max_examples=150, deadline=None)
@given(SHAPES, st.sampled_from(["==", "!=", "in", "not in"]), SHAPES)
def test_comparison_is_reported_as_never_equal_only_when_no_case_makes_it_so(
    left: str, operator: str, right: str
) -> None:
    """A comparison that holds in some case and not in another is never called impossible as a whole, and the
    literals that are reported change nothing: with another text in their place every case ends the same."""
    condition = f"{left} {operator} {right}"
    whole = compile_expr(condition)
    assert isinstance(whole.node, Comparison)
    found = [p for p in validate(a_graph(condition)) if p.rule in SLIPS]
    seen = {truthy(whole.evaluate(case.__getitem__)) for case in CASES}
    if any("never equal" in p.message for p in found):
        assert len(seen) == 1, condition
    for problem in found:
        wrong = [text for text in ("'rejct'", "'x'") if f"with {text}," in problem.message]
        if wrong and condition.count(wrong[0]) == 1:
            other = compile_expr(condition.replace(wrong[0], "'a text that is nowhere'"))
            for case in CASES:
                assert truthy(other.evaluate(case.__getitem__)) == truthy(whole.evaluate(case.__getitem__))
