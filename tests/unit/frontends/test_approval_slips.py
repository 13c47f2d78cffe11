"""Slips that make an approval weaker, or lead around it, each with the rule that finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Flow
from holdfast.model.diagnostics import Severity

OPTIONS = ["approve", "reject"]
TEXTS = [{"id": "approve", "label": "Yes"}, {"id": "reject", "label": "No"}]


@dataclass
class Order:
    amount: int = 0
    tier: str = "gold"
    decision: str = ""
    verdict: str = ""


def order(*, asked: str = "amount > 100", paid: str = "decision == 'approve'", **hold: Any) -> Flow:
    """look, then ask or pay, which acts."""
    flow = Flow("order", state=Order, effect="pure")
    flow.node(id="look")(lambda: None)
    flow.hold("ask", prompt="Pay {{amount}}?", **{"options": OPTIONS, **hold})
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    flow.edge("look", "ask", when=asked)
    flow.edge("look", "pay", otherwise=True)
    flow.edge("ask", "pay", when=paid)
    flow.edge("ask", "no", otherwise=True)
    return flow


def found(flow: Flow) -> list[tuple[str, str, str]]:
    return [
        (each.rule, each.severity.value, each.node or each.edge or "")
        for each in flow.problems()
        if each.severity in (Severity.error, Severity.warning)
    ]


def quorum(*of: str, need: int = 2, **more: Any) -> dict[str, Any]:
    return {"mode": "quorum", "need": need, "of": list(of), **more}


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize(
    "approval",
    [
        quorum("user:ann", "user:ann"),
        quorum("ann", "ann"),
        quorum("ann", "user:ann"),
        quorum("user:ann@x.org", "User: Ann@X.org"),
        quorum("group:finance", "group:finance"),
        quorum("user:{{tier}}", "user:{{tier}}"),
        quorum("user:ann", "user:bob", exclude=["user:ann"]),
        quorum("ann", "bob", need=3),
        {"mode": "sequential", "of": ["user:ann", "user:ann"]},
    ],
    ids=str,
)
def test_rule_of_several_is_refused_when_its_seats_are_fewer(approval: dict[str, Any]) -> None:
    assert found(order(approval=approval)) == [("hold-approval", "error", "ask")]


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize(
    "approval",
    [
        quorum("user:ann", "group:ann"),
        quorum("user:Ann", "user:ann"),
        quorum("group:finance", need=3),
        quorum("user:ann", "user:ann", distinct_people=False),
        quorum("group:finance", exclude=["user:ann"]),
    ],
    ids=str,
)
def test_rule_of_several_is_accepted_when_its_seats_may_be_enough(approval: dict[str, Any]) -> None:
    assert found(order(approval=approval)) == []


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("tier in 'gold,silver'", ("text-part", "warning")),
        ("not (tier not in 'gold')", ("text-part", "warning")),
        ("amount > 100 and amount < 50", ("constant-condition", "error")),
        ("tier == 'gold' and tier == 'silver'", ("constant-condition", "error")),
        ("tier in ['gold'] and tier not in ['gold', 'silver']", ("constant-condition", "error")),
        ("amount > 100 or amount < 500", ("constant-condition", "warning")),
        ("tier != 'gold' or tier != 'silver'", ("constant-condition", "warning")),
        ("tier in ['gold', 'silver']", None),
        ("'old' in tier", None),
        ("amount > 100 and amount < 500", None),
        ("amount > 100 and tier == 'gold'", None),
        ("amount > 100 or tier != 'gold'", None),
    ],
)
def test_condition_is_reported_when_it_asks_for_letters_or_never_changes(
    asked: str, expected: tuple[str, str] | None
) -> None:
    assert found(order(asked=asked)) == ([(*expected, "look->ask")] if expected else [])


@pytest.mark.covers("SAFE-CHECK-06")
def test_condition_of_a_decision_is_reported_when_every_option_meets_it() -> None:
    paid = "decision != 'reject' or decision != 'approve'"
    assert ("constant-condition", "warning", "ask->pay") in found(order(paid=paid))


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize(
    ("options", "paid"),
    [
        (["approve", "Approve"], "decision == 'approve'"),
        ([{"id": "approve", "label": "OK"}, {"id": "reject", "label": "ok"}], "decision == 'approve'"),
        (
            [{"id": "approve", "label": "Reject"}, {"id": "reject", "label": "Send back"}],
            "decision == 'approve'",
        ),
    ],
    ids=["ids", "labels", "label_of_another"],
)
def test_options_are_refused_when_people_take_one_for_another(options: Any, paid: str) -> None:
    assert found(order(options=options, paid=paid)) == [("hold-options", "error", "ask")]


@pytest.mark.covers("SAFE-CHECK-06")
def test_options_are_accepted_when_their_labels_differ() -> None:
    assert found(order(options=TEXTS)) == []


@pytest.mark.covers("SAFE-CHECK-16")
def test_edge_of_a_refusal_is_warned_about_when_only_it_leads_to_what_acts() -> None:
    assert found(order(paid="decision == 'reject'")) == [("refusal-acts", "warning", "ask->pay")]


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize("default", ["go", "stop"])
def test_default_of_a_timeout_is_warned_about_when_it_acts_under_another_word(default: str) -> None:
    terms = {"timeout": "1h", "on_timeout": "default", "default_option": default}
    named = found(order(options=["go", "stop"], paid="decision == 'go'", **terms))
    assert named == ([("approving-default", "warning", "ask")] if default == "go" else [])


def two_questions(bind: str) -> Flow:
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("legal", prompt="Legal?", options=OPTIONS)
    flow.hold("money", prompt="Pay?", options=OPTIONS, bind=bind)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.edge("legal", "money")
    flow.edge("money", "pay", when=f"{bind} == 'approve' and decision == 'approve'")
    return flow


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize("bind", ["decision", "verdict"])
def test_decision_is_warned_about_when_the_next_question_overwrites_it(bind: str) -> None:
    named = [each for each in found(two_questions(bind)) if each[0] != "constant-condition"]
    assert named == ([("decision-unread", "warning", "legal")] if bind == "decision" else [])


def _returns() -> dict[str, Any]:
    return {"decision": "approve"}


def _assigns(s: Order) -> None:
    s.decision = "approve"


def _refuses() -> dict[str, Any]:
    return {"decision": "reject"}


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(("code", "warned"), [(_returns, True), (_assigns, True), (_refuses, False)])
def test_code_behind_a_question_is_warned_about_when_it_writes_the_approval(code: Any, warned: bool) -> None:
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS)
    flow.node(id="between")(code)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.edge("ask", "between")
    flow.edge("between", "pay", when="decision == 'approve'")
    assert (("decision-set", "warning", "between") in found(flow)) is warned
