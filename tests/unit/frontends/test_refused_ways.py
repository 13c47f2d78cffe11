"""Conditions and ways that a refusal takes as an approval does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Flow
from tests.unit.frontends.test_approval_slips import OPTIONS, Order, found, order

PASSES = [("refusal-passes", "warning", "ask->pay")]


@dataclass
class Result(Order):
    decision_result: dict[str, Any] | None = None


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("paid", "warned"),
    [
        ("exists(decision)", True),
        ("decision == decision", True),
        ("decision == 'approve' or amount < 100", True),
        ("amount < 100 || decision == 'approve'", True),
        ("decision == 'approve' ? true : amount < 5", True),
        ("input.decision == 'approve'", True),
        ("exists(decision_result)", True),
        ("decision_result != null", True),
        ("decision_result.comment == 'approve'", True),
        ("decision == 'approve'", False),
        ("decision != 'reject'", False),
        ("decision == 'approve' and amount < 100", False),
        ("amount < 100 and decision == 'approve'", False),
        ("decision_result.decision == 'approve'", False),
        ("scratch.decision == 'approve'", False),
        # The refusal is meant.
        ("decision in ['approve', 'reject']", False),
    ],
)
def test_condition_is_warned_about_when_it_can_hold_after_a_refusal(paid: str, warned: bool) -> None:
    flow = Flow("order", state=Result, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    flow.edge("ask", "pay", when=paid)
    flow.edge("ask", "no", otherwise=True)
    assert found(flow) == (PASSES if warned else [])


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize("when", ["amount < 100", "true"])
def test_second_edge_to_what_acts_is_warned_about_when_it_does_not_ask_for_the_approval(when: str) -> None:
    flow = order()
    flow.edge("ask", "pay", when=when)
    assert found(flow) == [("refusal-passes", "warning", "ask->pay#2")]


@pytest.mark.covers("SAFE-CHECK-16")
def test_otherwise_is_warned_about_when_only_some_approvals_go_elsewhere() -> None:
    """Above 1,000 a second person is asked: below, a refusal is paid."""
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS)
    flow.hold("again", prompt="Really?", options=OPTIONS, bind="verdict")
    flow.node(id="pay", effect="external")(lambda: None)
    flow.edge("ask", "again", when="decision == 'approve' and amount > 1000")
    flow.edge("ask", "pay", otherwise=True)
    flow.edge("again", "pay", when="verdict == 'approve'")
    assert ("refusal-passes", "warning", "ask->pay") in found(flow)


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("paid", "warned"),
    [
        ("decision == verdict", True),
        ("decision == 'approve' or verdict == 'approve'", False),  # one of them is enough
        ("decision == 'approve' and verdict == 'approve'", False),
    ],
)
def test_condition_of_two_decisions_is_warned_about_when_two_refusals_meet_it(
    paid: str, warned: bool
) -> None:
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("legal", prompt="Legal?", options=OPTIONS)
    flow.hold("money", prompt="Pay?", options=OPTIONS, bind="verdict")
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    flow.edge("legal", "money")
    flow.edge("money", "pay", when=paid)
    flow.edge("money", "no", otherwise=True)
    rules = {rule for rule, _, where in found(flow) if where == "money->pay"}
    assert ("refusal-passes" in rules) is warned


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("when", "rule"),
    [
        ("decision == 'reject'", "refusal-acts"),
        ("exists(decision)", "refusal-passes"),
        ("decision == 'approve'", None),
    ],
)
def test_condition_of_a_later_node_is_warned_about_as_that_of_the_hold_is(
    when: str, rule: str | None
) -> None:
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS)
    flow.node(id="note")(lambda: None)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    flow.edge("ask", "note")
    flow.edge("note", "pay", when=when)
    flow.edge("note", "no", otherwise=True)
    assert found(flow) == ([(rule, "warning", "note->pay")] if rule else [])


def _says_why() -> dict[str, Any]:
    return {"verdict": "refused"}


def _says_nothing() -> dict[str, Any]:
    return {"tier": "gold"}


def _pays_by_verdict(s: Order) -> None:
    print(s.verdict)


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(("between", "warned"), [(_says_nothing, True), (_says_why, False)])
@pytest.mark.parametrize("way", ["refusal", "timeout"])
def test_detour_is_warned_about_when_it_leads_to_what_an_approval_does(
    way: str, between: Any, warned: bool
) -> None:
    more = {"timeout": "1h", "on_timeout": "branch:between"} if way == "timeout" else {}
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS, **more)
    flow.node(id="between")(between)
    flow.node(id="pay", effect="external")(_pays_by_verdict)
    flow.edge("ask", "pay", when="decision == 'approve'")
    if way == "refusal":
        flow.edge("ask", "between", when="decision == 'reject'")
    flow.edge("between", "pay")
    rules = [rule for rule, _, _ in found(flow)]
    assert ("refusal-passes" in rules) is warned
