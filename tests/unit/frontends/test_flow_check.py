"""Slips that `holdfast check` finds in flows written in Python, each by its rule and place."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec
import pytest

from holdfast import END, Flow
from holdfast.model.diagnostics import Severity


@dataclass(frozen=True)
class Customer:
    name: str
    vip: bool = False


class Line(msgspec.Struct, frozen=True):
    sku: str
    price: float


class Address(TypedDict):
    city: str


class Colour(StrEnum):
    red = "red"
    blue = "blue"


@dataclass
class Order:
    amount: int
    customer: Customer
    address: Address
    lines: list[Line] = field(default_factory=list)
    prices: dict[str, float] = field(default_factory=dict)
    plan: Literal["free", "pro"] = "free"
    colour: Colour = Colour.red
    good: bool = False
    note: str | None = None
    decision: str = ""
    results: list[Any] = field(default_factory=list)


def an_order(state: Any = Order) -> Flow:
    """assess, approve (a hold), pay and note, without edges."""
    flow = Flow("order", state=state, effect="pure")

    @flow.node
    def assess(_s: Any) -> None: ...

    flow.hold("approve", prompt="?", options=["approve", "reject"])

    @flow.node
    def pay(_s: Any) -> None: ...

    @flow.node
    def note(_s: Any) -> None: ...

    return flow


def found(flow: Flow, severity: Severity = Severity.error) -> list[tuple[str, str]]:
    unconnected = ("unreachable", "no-start")
    return [
        (p.rule, p.edge or p.node or "")
        for p in flow.problems()
        if p.severity is severity and p.rule not in unconnected
    ]


def by_edge(condition: str, state: Any = Order) -> Flow:
    flow = an_order(state)
    flow.chain("assess", "approve")
    flow.edge("approve", "pay", when=condition)
    flow.edge("approve", "note", otherwise=True)
    return flow


@pytest.mark.parametrize(
    "condition",
    [
        "amuont > 100",
        "state.amuont > 100",
        "scratch.amuont > 100",
        "input.amuont > 100",
        "exists(amuont)",
        "amuont | default(3) > 2",
        "customer.nmae == 'Ada'",
        "amount.total > 3",
        "address.town == 'x'",
        "lines.0.cost > 3",
        "lines.first.price > 3",
        "decison == 'approve'",
        "decision_reslt.comment == 'x'",
        "good && (plan == 'pro' || gold)",
    ],
)
@pytest.mark.covers("SAFE-CHECK-05")
def test_condition_is_refused_when_a_typed_state_does_not_have_its_name(condition: str) -> None:
    assert found(by_edge(condition)) == [("unknown-field", "approve->pay")]


@pytest.mark.parametrize(
    "condition",
    [
        "amount > 100",
        "state.amount > 100",
        "input.amount > 100",
        "customer.name == 'Ada' && customer.vip",
        "address.city == 'x'",
        "lines.0.price > 3",
        "prices.anything > 3",
        "exists(lines.3) && lines.3.sku == 'x'",
        "decision_result.comment == 'x'",
        "outcome == 'success'",
        "artifacts.x == 3 || memory.y == 3",
        "note == null || note == 'x'",
        "colour == 'red'",
    ],
)
def test_condition_is_accepted_when_a_typed_state_has_its_names(condition: str) -> None:
    assert found(by_edge(condition)) == []


@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        ("decision == 'aprove'", "unknown-option"),
        ("'aprove' != decision", "unknown-option"),
        ("decision in ['approve', 'rejct']", "unknown-option"),
        ("decision not in ['yes']", "unknown-option"),
        ("decision | default('') == 'yes'", "unknown-option"),
        ("amount > 3 ? decision == 'yes' : true", "unknown-option"),
        ("decision == true", "unknown-option"),
        ("decision", "decision-truth"),
        ("!decision", "decision-truth"),
        ("amount > 3 && decision", "decision-truth"),
        ("decision == 'approve' || 'approved'", "constant-operand"),
        ("amount > 3 && 1", "constant-operand"),
        ("output != 'reject'", "hold-output"),
        ("decision not in 'rejct'", "decision-part"),
        ("'reejct' not in decision", "decision-part"),
        ("decision >= 'approve'", "decision-part"),
    ],
)
@pytest.mark.parametrize("state", [Order, None])
@pytest.mark.covers("SAFE-CHECK-06")
def test_condition_is_refused_when_a_decision_is_compared_with_no_option(
    condition: str, rule: str, state: Any
) -> None:
    flow = by_edge(condition.replace("amount", "input.amount"), state)
    assert found(flow) == [(rule, "approve->pay")]


@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        ("plan == 'porr'", "unknown-value"),
        ("colour in ['red', 'green']", "unknown-value"),
        ("amount == '100'", "type-mismatch"),
        ("amount > '100'", "type-mismatch"),
        ("amount > null", "type-mismatch"),
        ("customer.name > 3", "type-mismatch"),
        ("good == 'true'", "type-mismatch"),
        ("amount == null", "type-mismatch"),
    ],
)
def test_comparison_is_refused_when_it_never_holds(condition: str, rule: str) -> None:
    assert found(by_edge(condition)) == [(rule, "approve->pay")]


def test_decision_is_not_compared_with_options_when_code_sets_the_field_too() -> None:
    flow = by_edge("decision == 'skipped'")

    @flow.node
    def skip(_s: Any) -> dict[str, Any]:
        return {"decision": "skipped"}

    assert found(flow) == []


@pytest.mark.parametrize(
    ("conditions", "case"),
    [
        (["amount > 100", "amount < 100"], "amount is 100"),
        (["decision == 'approve'", "amount > 3"], "decision is 'reject'"),
        (["good", "amount > 3"], "good is False"),
        (["plan == 'pro'", "good"], "plan is 'free'"),
        (["note == 'a'", "note == 'b'"], "note is any other text"),
        (["exists(note) && note == 'a'", "exists(note) && note != 'a'"], "note is missing"),
    ],
)
@pytest.mark.covers("SAFE-CHECK-07")
def test_edges_are_refused_when_a_case_is_left_out(conditions: list[str], case: str) -> None:
    flow = an_order()
    flow.chain("assess", "approve")
    for target, condition in zip(["pay", "note"], conditions, strict=True):
        flow.edge("approve", target, when=condition)
    assert found(flow) == [("no-edge", "approve")]
    assert case in next(str(p) for p in flow.problems() if p.rule == "no-edge")
    flow.edge("approve", END, otherwise=True)
    assert found(flow) == []


@pytest.mark.parametrize(
    "conditions",
    [
        ["amount > 100", "amount <= 100"],
        ["amount > 100", "amount < 101"],
        ["decision == 'approve'", "decision != 'approve'"],
        ["decision == 'approve'", "decision == 'reject'"],
        ["good", "!good"],
        ["plan == 'pro' && amount > 3", "plan == 'free' || amount <= 3"],
        ["colour == 'red'", "colour == 'blue'"],
        ["note == null", "note != null"],
    ],
)
@pytest.mark.covers("SAFE-CHECK-07")
def test_edges_are_accepted_when_they_cover_every_case(conditions: list[str]) -> None:
    flow = an_order()
    flow.chain("assess", "approve")
    for target, condition in zip(["pay", "note"], conditions, strict=True):
        flow.edge("approve", target, when=condition)
    assert found(flow) == []


def test_loop_that_continues_at_its_limit_is_refused_when_no_edge_is_left_then() -> None:
    flow = an_order()
    flow.chain("assess", "approve")
    flow.loop("approve", "assess", when="decision == 'reject'", max=3, on_limit="continue")
    flow.edge("approve", "pay", when="decision == 'approve'")
    assert found(flow) == [("no-edge", "approve")]


@pytest.mark.covers("SAFE-CHECK-07")
def test_gap_is_a_warning_when_the_state_is_not_typed() -> None:
    flow = an_order(None)
    flow.chain("assess", "approve")
    flow.edge("approve", "pay", when="input.amount > 100")
    flow.edge("approve", "note", when="input.amount < 100")
    assert found(flow) == []
    assert found(flow, Severity.warning) == [("no-edge", "approve")]


@pytest.mark.parametrize("kind", ["colour", "numbr", "Text", ["text"]])
@pytest.mark.parametrize("state", [Order, None])
@pytest.mark.covers("SAFE-CHECK-08")
def test_form_is_refused_when_a_field_has_an_unknown_kind(kind: Any, state: Any) -> None:
    flow = Flow("form", state=state)
    flow.hold("ask", prompt="?", sections=[{"type": "input", "field": "amount", "kind": kind}])
    assert found(flow) == [("field-kind", "ask")]


def test_form_is_refused_when_its_text_reads_an_unknown_name() -> None:
    flow = Flow("form", state=Order)
    flow.hold("ask", prompt="?", sections=[{"type": "context", "content": "Pay {{amuont}}"}])
    assert found(flow) == [("unknown-field", "ask")]


def chooses() -> Literal["pay", "note"]:
    return "pay"


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({"pay": "pay"}, "may return 'note', for which there is no arm"),
        ({"pay": "pay", "note": "note", "not": "note"}, "never returns 'not', which has an arm"),
        ({"pay": "pay", "note": "note"}, ""),
    ],
)
@pytest.mark.covers("SAFE-CHECK-05")
def test_router_table_is_refused_when_its_function_returns_something_else(
    arms: dict[str, str], message: str
) -> None:
    flow = an_order()
    flow.branch("assess", chooses, arms)
    assert [p.message for p in flow.problems() if p.rule == "router-arm"] == (
        [f"chooses {message}"] if message else []
    )


def untyped(condition: str, *, complete: bool) -> Flow:
    """A child that gets `amount`, and a node that sets `score`."""
    child = Flow("child", effect="pure")

    def shows(_s: Any) -> dict[str, Any]:
        return {"score": 1}

    def hides(_s: Any) -> dict[str, Any]:
        update: dict[str, Any] = {}
        update |= {"score": 1}
        return update

    child.node(id="work")(shows if complete else hides)

    @child.node
    def done(_s: Any) -> None: ...

    child.edge("work", done, when=condition)
    flow = Flow("parent", effect="pure")
    flow.subflow("sub", child, inputs={"amount": "3"})
    return flow


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.covers("SAFE-CHECK-09")
def test_name_that_nothing_writes_is_an_error_when_every_writer_declares_its_names(complete: bool) -> None:
    assert found(untyped("score > 3 && amount > 3", complete=complete)) == []
    flow = untyped("scroe > 3", complete=complete)
    severity = Severity.error if complete else Severity.warning
    assert found(flow, severity) == [("unknown-name", "work->done")]
    # That a name may be missing does not make a misspelt one right.
    for condition in ("exists(scroe)", "exists(scroe) && scroe > 3", "scroe | default(0) > 3"):
        assert found(untyped(condition, complete=complete), severity) == [("unknown-name", "work->done")]
    known = ["exists(score) && score | default(0) > 3"] if complete else []
    for condition in ("input.scroe > 3", "exists(input.scroe)", *known):
        assert found(untyped(condition, complete=complete), severity) == []


@pytest.mark.covers("SAFE-CHECK-09")
def test_advice_for_a_template_is_one_that_templates_accept() -> None:
    flow = Flow("ask", effect="pure")
    flow.hold("ask", prompt="Pay {{totl}}?", options=["yes", "no"])
    (problem,) = [p for p in flow.problems() if p.rule == "unknown-name"]
    advice = "{{input.totl | default('...')}}"
    assert advice in (problem.fix or "")
    corrected = Flow("ask", effect="pure")
    corrected.hold("ask", prompt=f"Pay {advice}?", options=["yes", "no"])
    assert found(corrected) == found(corrected, Severity.warning) == []
    for text in ("{{totl | default('x')}}", "{{totl | upper}}"):
        wrong = Flow("ask", effect="pure")
        wrong.hold("ask", prompt=text, options=["yes", "no"])
        assert found(wrong, Severity.warning) == [("unknown-name", "ask")]


def test_problem_has_the_line_that_declares_its_edge() -> None:
    flow = an_order()
    flow.edge("assess", "pay", when="amuont > 3")
    (problem,) = [p for p in flow.problems() if p.edge == "assess->pay"]
    lines = Path(__file__).read_text("utf-8").splitlines()
    assert Path(problem.file).name == Path(__file__).name
    assert 'flow.edge("assess", "pay", when="amuont > 3")' in lines[problem.line - 1]


@dataclass
class Needed:
    decision: str


@dataclass
class Narrow:
    decision: Literal["approve", ""] = ""


def expiring(state: Any) -> Flow:
    flow = Flow("expiring", state=state, effect="pure")
    flow.hold("ask", prompt="?", options=["approve", "reject"], timeout="1d", on_timeout="branch:late")
    flow.node(id="late")(lambda _s: None)
    return flow


@pytest.mark.parametrize(
    ("state", "rules"),
    [
        (Needed, [("timeout-value", "ask")]),
        (Narrow, [("option-type", "ask")]),
        (Order, []),
        (None, []),
    ],
)
@pytest.mark.covers("SAFE-TYPES-01")
def test_hold_is_refused_when_its_timeout_leaves_no_declared_value(
    state: Any, rules: list[tuple[str, str]]
) -> None:
    assert found(expiring(state)) == rules
