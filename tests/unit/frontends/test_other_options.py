"""Approvals by exclusion, by default, and of what is changed afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, Flow
from tests.unit.frontends.test_approval_slips import Order, found, order

THREE = ["approve", "reject", "later"]
OTHER = ("other-option", "warning")
DEFAULT = ("approving-default", "warning")


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("paid", "warned"),
    [
        ("decision != 'reject'", OTHER),
        ("decision not in ['reject']", OTHER),
        ("not (decision == 'reject')", OTHER),
        ("decision != 'reject' and amount > 0", OTHER),
        ("decision | default('approve') == 'approve'", DEFAULT),
        ("decision == 'approve'", None),
        ("decision in ['approve', 'later']", None),
        ("decision != 'reject' and decision != 'later'", None),
        ("decision == 'approve' or decision == 'later'", None),
        ("decision | default('reject') == 'approve'", None),
    ],
)
def test_condition_is_warned_about_when_an_option_that_it_does_not_name_pays(
    paid: str, warned: tuple[str, str] | None
) -> None:
    assert found(order(options=THREE, paid=paid)) == ([(*warned, "ask->pay")] if warned else [])


@pytest.mark.covers("SAFE-CHECK-16")
def test_condition_by_exclusion_is_accepted_when_there_are_two_options() -> None:
    assert found(order(paid="decision != 'reject'")) == []


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize("first", ["reject", "approve"])
def test_otherwise_is_warned_about_when_only_the_refusal_is_named(first: str) -> None:
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=THREE)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    flow.edge("ask", "no" if first == "reject" else "pay", when=f"decision == '{first}'")
    flow.edge("ask", "pay" if first == "reject" else "no", otherwise=True)
    assert found(flow) == ([(*OTHER, "ask->pay")] if first == "reject" else [])


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("paid", "warned"), [("decision != 'reject'", True), ("decision == 'approve'", False)]
)
def test_condition_behind_a_branch_of_a_timeout_is_warned_about_when_it_holds_without_a_decision(
    paid: str, warned: bool
) -> None:
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=THREE[:2], timeout="1h", on_timeout="branch:check")
    flow.node(id="check")(lambda: None)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    flow.edge("ask", "check")
    flow.edge("check", "pay", when=paid)
    flow.edge("check", "no", otherwise=True)
    assert ((*OTHER, "check->pay") in found(flow)) is warned


@pytest.mark.covers("SAFE-CHECK-16")
def test_decision_of_a_sub_flow_is_followed_when_its_third_option_pays() -> None:
    child = Flow("child", effect="pure")
    child.hold("ask", prompt="Pay?", options=THREE)
    flow = Flow("order", state=Order, effect="pure")
    flow.subflow("sub", child, inputs={}, outputs={"verdict": "state.decision"})
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    flow.edge("sub", "pay", when="verdict != 'reject'")
    flow.edge("sub", "no", otherwise=True)
    assert found(flow) == [(*OTHER, "sub->pay")]


def _excludes(s: Order) -> None:
    if s.decision != "reject":
        print("paid")


def _returns_early(s: Order) -> None:
    if s.decision == "reject":
        return
    print("paid")


def _matches(s: Order) -> None:
    match s.decision:
        case "reject":
            return
        case _:
            print("paid")


def _names_both(s: Order) -> None:
    if s.decision in ("reject", "later"):
        return
    print("paid")


def _or_approve(s: Order) -> None:
    if (s.decision or "approve") == "approve":
        print("paid")


def _get_approve(s: dict[str, Any]) -> None:
    if s.get("decision", "approve") == "approve":
        print("paid")


def _getattr_approve(s: Order) -> None:
    if getattr(s, "decision", "approve") == "approve":
        print("paid")


def _or_reject(s: Order) -> None:
    if (s.decision or "reject") == "approve":
        print("paid")


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("code", "warned"),
    [
        (_excludes, OTHER),
        (_returns_early, OTHER),
        (_matches, OTHER),
        (_or_approve, DEFAULT),
        (_get_approve, DEFAULT),
        (_getattr_approve, DEFAULT),
        (_names_both, None),
        (_or_reject, None),
    ],
)
def test_code_that_acts_is_warned_about_when_it_takes_another_answer_for_an_approval(
    code: Any, warned: tuple[str, str] | None
) -> None:
    flow = Flow("order", effect="pure") if code is _get_approve else Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=THREE)
    flow.node(id="pay", effect="external")(code)
    flow.edge("ask", "pay")
    assert found(flow) == ([(*warned, "pay")] if warned else [])


@pytest.mark.covers("SAFE-CHECK-16")
def test_function_of_an_edge_is_warned_about_when_it_excludes_the_refusal_alone() -> None:
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=THREE)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    flow.edge("ask", "pay", when=lambda s: s.decision != "reject")
    flow.edge("ask", "no", otherwise=True)
    assert found(flow) == [(*OTHER, "ask")]


@pytest.mark.covers("SAFE-CHECK-16")
def test_script_is_warned_about_when_it_excludes_the_refusal_alone() -> None:
    flow = Flow("order", effect="pure")

    @flow.script
    async def place(ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("Order?", options=["approve", "reject", "later"])
        if reply.decision != "reject":
            await ctx.step("pay", lambda: 1, effect="external")
        return {}

    assert found(flow) == [(*OTHER, "place")]


@dataclass
class Approved:
    amount: int = 0
    decision: str = "approve"


@pytest.mark.covers("SAFE-CHECK-16")
def test_default_of_the_field_is_warned_about_when_it_approves() -> None:
    flow = Flow("order", state=Approved, effect="pure")
    flow.hold("ask", prompt="Pay?", options=THREE[:2])
    flow.node(id="pay", effect="external")(lambda: None)
    flow.edge("ask", "pay", when="decision == 'approve'")
    assert found(flow) == [(*DEFAULT, "ask")]


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("hold", "expected"),
    [
        ({"assignee": "grp:finance"}, ("assignee", "warning")),
        ({"timeout": "1h", "ladder": [("4h", "squad:lead")]}, ("assignee", "warning")),
        ({"timeout": "1h", "on_timeout": "escalate:squad:lead"}, ("assignee", "warning")),
        ({"approval": {"exclude": ["grp:finance"]}}, ("hold-approval", "error")),
        ({"approval": {"mode": "quorum", "need": 2, "of": ["grp:board"]}}, ("hold-approval", "error")),
        ({"approval": {"veto": ["rol:cfo"]}}, ("hold-approval", "error")),
        ({"approval": {"veto": ["role:cfo"], "exclude": ["role:cfo"]}}, ("hold-approval", "error")),
        ({"excluded": ["grp:interns"]}, ("hold-excluded", "error")),
        # Taken as the name of somebody, they would exclude or seat nobody.
        ({"approval": {"exclude": ["user:initiator"]}}, ("hold-approval", "error")),
        ({"excluded": ["group: earlier_approvers"]}, ("hold-excluded", "error")),
        ({"approval": {"exclude": ["user:{{tier}}"]}}, ("hold-approval", "error")),
        ({"excluded": ["user:{tier}"]}, ("hold-excluded", "error")),
        ({"assignee": "group:a", "approval": {"veto": ["user:{{tier}}"]}}, ("hold-approval", "error")),
        (
            {"approval": {"mode": "quorum", "need": 2, "of": ["user:{{tier}}", "user:b"]}},
            ("hold-approval", "error"),
        ),
        # One person would be enough.
        ({"approval": {"mode": "quorum", "of": ["user:a", "user:b"]}}, ("hold-approval", "error")),
        ({"assignee": "group:a", "approval": {"mode": "quorum", "need": 1}}, None),
        ({"assignee": "group:board", "approval": {"veto": ["role:cfo"]}}, ("veto-seat", "warning")),
        ({"assignee": "Group: finance"}, None),
        ({"assignee": "user:urn:x:1"}, None),
        ({"assignee": "delegated_user:x"}, None),
        ({"excluded": ["service:payer", "user:eve", "initiator"]}, None),
        ({"assignee": "role:cfo", "approval": {"veto": ["role:cfo"]}}, None),
        (
            {"approval": {"mode": "quorum", "need": 2, "of": ["group:b", "role:cfo"], "veto": ["role:cfo"]}},
            None,
        ),
    ],
    ids=str,
)
def test_name_is_reported_when_it_is_nobody_or_is_not_asked(
    hold: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    reported = {each for each in found(order(**hold)) if each[0] != "strict-assignee"}
    assert ((*expected, "ask") in reported) if expected else reported == set()


def _returns_amount() -> dict[str, Any]:
    return {"amount": 5}


def _assigns_amount(s: Order) -> None:
    s.amount += 5


def _sets_another() -> dict[str, Any]:
    return {"tier": "silver"}


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("code", "warned"), [(_returns_amount, True), (_assigns_amount, True), (_sets_another, False)]
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_field_that_was_shown_is_warned_about_when_it_is_set_between_approval_and_effect(
    code: Any, warned: bool, place: str
) -> None:
    flow = Flow("order", state=Order, effect="pure")
    flow.node(id="fee")(code)
    flow.hold("ask", prompt="Pay {{amount}}?", options=THREE[:2])
    flow.node(id="pay", effect="external")(_pays)
    if place == "before":
        flow.edge("fee", "ask")
        flow.edge("ask", "pay", when="decision == 'approve'")
    else:
        flow.edge("ask", "fee", when="decision == 'approve'")
        flow.edge("fee", "pay")
    expected = warned and place == "after"
    assert found(flow) == ([("shown-changed", "warning", "fee")] if expected else [])


def _pays(s: Order) -> None:
    print(s.amount)


FORM = {"type": "object", "properties": {"amount": {"type": "integer"}, "note": {"type": "string"}}}
RENAMED = [
    {"type": "input", "field": "correct", "kind": "number", "default": "{{amount}}"},
    {"type": "decision", "options": THREE[:2]},
]


@dataclass
class Filled(Order):
    form: dict[str, Any] | None = None


def _pays_what_was_filled_in(s: Filled) -> None:
    print((s.form or {})["amount"], s.amount)


def _pays_nothing_of_it(s: Filled) -> None:
    print(s.tier)


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("pays", "form", "warned"),
    [
        (_pays, {"form": FORM, "options": THREE[:2]}, True),
        (_pays, {"form": FORM, "options": THREE[:2], "into": "form"}, True),
        (_pays, {"sections": RENAMED}, True),
        (_pays_what_was_filled_in, {"form": FORM, "options": THREE[:2], "into": "form"}, False),
        (_pays_nothing_of_it, {"form": FORM, "options": THREE[:2]}, False),
        (_pays, {"options": THREE[:2]}, False),
    ],
)
def test_field_that_a_person_corrects_is_warned_about_when_the_effect_reads_it_as_it_was(
    pays: Any, form: dict[str, Any], warned: bool
) -> None:
    flow = Flow("order", state=Filled, effect="pure")
    flow.hold("ask", prompt="Pay?", **form)
    flow.node(id="pay", effect="external")(pays)
    flow.edge("ask", "pay", when="decision == 'approve'")
    assert found(flow) == ([("form-unread", "warning", "pay")] if warned else [])


@pytest.mark.covers("SAFE-CHECK-16")
def test_form_is_read_when_a_condition_reads_it() -> None:
    flow = Flow("order", state=Filled, effect="pure")
    flow.hold("ask", prompt="Pay?", form=FORM, options=THREE[:2], into="form")
    flow.node(id="pay", effect="external")(_pays)
    flow.edge("ask", "pay", when="decision == 'approve' and form.amount == amount")
    assert found(flow) == []
