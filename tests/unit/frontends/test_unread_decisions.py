"""Decisions that decide nothing, and slips in code that tests one: each is found before a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, Flow
from holdfast.frontends.python.policies import quorum
from holdfast.model.diagnostics import Severity

OPTIONS = ["approve", "reject"]


@dataclass
class Order:
    amount: int = 0
    decision: str = ""
    verdict: str = ""


def order(**hold: Any) -> Flow:
    """ask (a hold), pay, which acts, and no, which does not; without edges from the hold."""
    flow = Flow("order", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS, **hold)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.node(id="no")(lambda: None)
    return flow


def nothing() -> dict[str, Any]:
    return {}


def found(flow: Flow, *rules: str) -> list[tuple[str, str, str]]:
    return [
        (problem.rule, problem.severity.value, problem.node or problem.edge or "")
        for problem in flow.problems()
        if problem.severity in (Severity.error, Severity.warning) and (not rules or problem.rule in rules)
    ]


def otherwise(flow: Flow) -> None:
    flow.edge("ask", "no", otherwise=True)


def _plain_chain() -> Flow:
    flow = order()
    flow.chain("ask", "pay", "no")
    return flow


def _other_field() -> Flow:
    flow = order(bind="verdict")
    flow.edge("ask", "pay", when="decision != 'reject'")
    otherwise(flow)
    return flow


def _other_field_in_code() -> Flow:
    flow = order(bind="verdict")
    flow.edge("ask", "pay", when=lambda s: s.decision != "reject")
    otherwise(flow)
    return flow


def _misspelt_in_code() -> Flow:
    flow = order()
    flow.edge("ask", "pay", when=lambda s: getattr(s, "decison", "approve") == "approve")
    otherwise(flow)
    return flow


def _negated_in_code() -> Flow:
    flow = order()
    flow.edge("ask", "pay", when=lambda s: not ("rejected" in s))  # noqa: E713
    otherwise(flow)
    return flow


def _amount_alone() -> Flow:
    flow = order()
    flow.edge("ask", "pay", when="amount > 3")
    otherwise(flow)
    return flow


def _later_act() -> Flow:
    flow = Flow("later", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS)
    flow.node(id="between")(lambda s: {"amount": s.amount})
    flow.node(id="pay", effect="write")(lambda: None)
    flow.chain("ask", "between", "pay")
    return flow


@pytest.mark.parametrize(
    "make",
    [
        _plain_chain,
        _other_field,
        _other_field_in_code,
        _misspelt_in_code,
        _negated_in_code,
        _amount_alone,
        _later_act,
    ],
)
@pytest.mark.covers("SAFE-CHECK-16")
def test_hold_is_warned_about_when_what_acts_behind_it_reads_no_decision(make: Callable[[], Flow]) -> None:
    assert found(make(), "decision-unread") == [("decision-unread", "warning", "ask")]


def _tested() -> Flow:
    flow = order()
    flow.edge("ask", "pay", when="decision == 'approve'")
    otherwise(flow)
    return flow


def _tested_in_code() -> Flow:
    flow = order()
    flow.edge("ask", "pay", when=lambda s: s.decision == "approve")
    otherwise(flow)
    return flow


def _hands_on(state: Any) -> bool:
    return bool(state.verdict == "x")


def _handed_on() -> Flow:
    flow = order()
    flow.edge("ask", "pay", when=lambda s: _hands_on(s))
    otherwise(flow)
    return flow


def _read_by_what_acts() -> Flow:
    flow = Flow("reads", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS)

    @flow.node(effect="external")
    def pay(s: Order) -> None:
        if s.decision == "approve":
            s.amount += 0

    flow.edge("ask", pay)
    return flow


def _nothing_acts() -> Flow:
    flow = order()
    flow.chain("ask", "no")
    return flow


@pytest.mark.parametrize("make", [_tested, _tested_in_code, _handed_on, _read_by_what_acts, _nothing_acts])
def test_hold_is_not_warned_about_when_its_decision_may_be_read(make: Callable[[], Flow]) -> None:
    assert found(make(), "decision-unread") == []


@pytest.mark.parametrize("outputs", [None, {"amount": "amount"}, {"verdict": "decision"}])
@pytest.mark.covers("SAFE-CHECK-16")
def test_sub_flow_is_warned_about_when_its_decision_is_no_output(outputs: dict[str, str] | None) -> None:
    child = Flow("child", state=Order, effect="pure")
    child.hold("ask", prompt="Pay?", options=OPTIONS)
    flow = Flow("parent", state=Order, effect="pure")
    flow.subflow("sub", child, outputs=outputs)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.chain("sub", "pay")
    known = outputs is not None and "verdict" in outputs
    assert found(flow, "decision-unread") == ([] if known else [("decision-unread", "warning", "sub")])


@pytest.mark.parametrize("join", ["all", "any", quorum(2)])
@pytest.mark.covers("SAFE-CHECK-16")
def test_join_is_warned_about_when_a_refusal_does_not_stop_it(join: Any) -> None:
    flow = Flow("join", effect="pure")
    flow.node(id="start")(lambda: None)
    flow.hold("legal", prompt="Pay?", options=OPTIONS, bind="legal")
    flow.hold("finance", prompt="Pay?", options=OPTIONS, bind="finance")
    flow.node(id="pay", join=join)(lambda: None)
    for each in ("legal", "finance"):
        flow.edge("start", each)
        flow.edge(each, "pay", when=f"{each} == 'approve'")
    both = [("join-decision", "warning", "pay")] * 2
    assert found(flow, "join-decision") == ([] if join == quorum(2) else both)


def test_join_is_not_warned_about_when_its_edges_exclude_each_other() -> None:
    flow = order()
    flow.node(id="start")(lambda: None)
    flow.edge("start", "ask", when="amount > 100")
    flow.edge("start", "pay", otherwise=True)
    flow.edge("ask", "pay", when="decision == 'approve'")
    otherwise(flow)
    assert found(flow) == []


@pytest.mark.parametrize(
    ("asks", "pays", "together"),
    [
        (None, None, True),
        ("amount > 100", None, True),
        ("amount > 100", "amount <= 101", True),
        ("amount > 100", "amount <= 100", False),
        ("verdict == 'a'", "verdict != 'a'", False),
    ],
)
@pytest.mark.covers("SAFE-CHECK-16")
def test_join_is_warned_about_when_one_node_leads_to_the_question_and_to_what_acts(
    asks: str | None, pays: str | None, together: bool
) -> None:
    flow = order()
    flow.node(id="start")(lambda: None)
    flow.edge("start", "ask", when=asks)
    flow.edge("start", "pay", when=pays)
    flow.edge("ask", "pay", when="decision == 'approve'")
    otherwise(flow)
    assert found(flow, "join-decision") == ([("join-decision", "warning", "pay")] if together else [])


@pytest.mark.parametrize("target", ["pay", "no"])
@pytest.mark.covers("SAFE-CHECK-16")
def test_timeout_of_a_hold_is_warned_about_when_it_leads_where_an_approval_does(target: str) -> None:
    flow = order(timeout="1h", on_timeout=f"branch:{target}")
    flow.edge("ask", "pay", when="decision == 'approve'")
    otherwise(flow)
    rules = [rule for rule, _, _ in found(flow, "approving-default")]
    assert rules == (["approving-default"] if target == "pay" else [])


@pytest.mark.parametrize("on_limit", ["continue", "fail"])
@pytest.mark.covers("SAFE-CHECK-16")
def test_loop_is_warned_about_when_its_limit_leads_on_with_the_refusal(on_limit: str) -> None:
    flow = order()
    flow.node(id="edit")(lambda: None)
    flow.edge("edit", "ask")
    flow.loop("ask", "edit", when="decision == 'reject'", max=2, on_limit=on_limit)
    flow.edge("ask", "pay", otherwise=True)
    expected = [("loop-limit", "warning", "ask->pay")] if on_limit == "continue" else []
    assert found(flow, "loop-limit") == expected


@pytest.mark.covers("SAFE-CHECK-16")
def test_outcome_of_a_hold_is_warned_about() -> None:
    flow = order()
    flow.edge("ask", "pay", when="outcome == 'success'")
    otherwise(flow)
    assert ("hold-outcome", "warning", "ask->pay") in found(flow)


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize("when", ["reply == 'reject'", "reply != 'approve'", "reply in ['reject', 'no']"])
@pytest.mark.parametrize("options", [None, ["approve", "reject", "no"]])
def test_comparing_the_free_answer_of_a_hold_is_warned_about(when: str, options: list[str] | None) -> None:
    flow = Flow("free", effect="pure")
    flow.hold("ask", prompt="Pay?", bind="reply", options=options)
    flow.node(nothing, name="pay")
    flow.node(nothing, name="stop")
    flow.edge("ask", "stop", when=when)
    flow.edge("ask", "pay", otherwise=True)
    expected = [("free-answer", "warning", "ask")] if options is None else []
    assert found(flow, "free-answer") == expected


def test_comparing_a_free_answer_in_code_is_warned_about_and_whether_it_is_empty_is_not() -> None:
    flow = Flow("free", effect="pure")
    flow.hold("ask", prompt="Pay?", bind="reply")
    flow.node(nothing, name="pay")
    flow.node(nothing, name="stop")
    flow.node(nothing, name="silent")
    flow.edge("ask", "silent", when="reply == ''")
    flow.edge("ask", "stop", when=lambda s: s["reply"] == "reject")
    flow.edge("ask", "pay", otherwise=True)
    assert [each[0] for each in found(flow, "free-answer")] == ["free-answer"]


# ---- questions of scripts


async def _ignores(ctx: Context) -> None:
    await ctx.ask("Pay?", options=OPTIONS)
    await ctx.step("pay", nothing, effect="external")


async def _keeps(ctx: Context) -> None:
    reply = await ctx.ask("Pay?", options=["approve", "reject"])  # noqa: F841
    await ctx.step("pay", nothing)


async def _reads(ctx: Context) -> None:
    reply = await ctx.ask("Pay?", options=OPTIONS)
    if reply.decision == "approve":
        await ctx.step("pay", nothing)


async def _reads_only(ctx: Context) -> None:
    await ctx.ask("Look?", options=OPTIONS)
    await ctx.step("look", nothing, effect="read")


async def _one_option(ctx: Context) -> None:
    await ctx.ask("Ready?", options=["go"])
    await ctx.step("pay", nothing)


async def _acts_before(ctx: Context) -> None:
    await ctx.step("pay", nothing)
    await ctx.ask("Good?", options=OPTIONS)


async def _free(ctx: Context) -> None:
    reply = await ctx.ask("Pay?")
    if reply.decision.strip().lower() != "no":
        await ctx.step("pay", nothing)


async def _free_by_itself(ctx: Context) -> None:
    if await ctx.ask("Pay?") in ("no", "reject"):
        return
    await ctx.step("pay", nothing)


async def _free_text(ctx: Context) -> None:
    reply = await ctx.ask("Why?")
    if reply.decision != "":
        await ctx.step("note", nothing, reply.decision)


async def _form(ctx: Context) -> None:
    reply = await ctx.ask("Pay?", form={"choice": {"options": OPTIONS}})
    if reply.decision != "reject":
        await ctx.step("pay", nothing)


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("script", "rule"),
    [
        (_ignores, "decision-unread"), (_keeps, "decision-unread"), (_free, "free-answer"),
        (_free_by_itself, "free-answer"), (_reads, None), (_reads_only, None), (_one_option, None),
        (_acts_before, None), (_free_text, None), (_form, None),
    ],
)  # fmt: skip
def test_script_is_warned_about_when_an_answer_decides_nothing_or_is_any_text(
    script: Callable[..., Any], rule: str | None
) -> None:
    flow = Flow("asks")
    flow.script(script, id="work")
    named = found(flow, "decision-unread", "free-answer")
    assert named == ([(rule, "warning", "work")] if rule else [])


# ---- slips in code


def _truth(s: Order) -> bool:
    return bool(s.decision)


def _if_truth(s: Order) -> bool:
    if s.decision and s.amount > 3:
        return True
    return s.amount == 1


def _not(s: Order) -> bool:
    return not s.decision


def _constant(s: Order) -> bool:
    return bool(s.decision == "approve" or "approved")  # noqa: SIM222


def _by_getattr(s: Order) -> bool:
    return getattr(s, "decision", None) != "rejct"


def _by_class_pattern(s: Order) -> bool:
    match s:
        case Order(decision="rejct"):
            return False
        case _:
            return True


def _by_conditional(s: Order) -> bool:
    return False if s.decision == "rejct" else True  # noqa: SIM211


CODE: list[tuple[Callable[..., Any], str]] = [
    (_truth, "decision-truth"),
    (_if_truth, "decision-truth"),
    (_not, "decision-truth"),
    (_constant, "constant-operand"),
    (_by_getattr, "unknown-option"),
    (_by_class_pattern, "unknown-option"),
    (_by_conditional, "unknown-option"),
    (lambda s: bool(s.decision), "decision-truth"),
    (lambda s: False if s.decision == "rejct" else True, "unknown-option"),  # noqa: SIM211
    (lambda s: not s.decision == "rejct", "unknown-option"),  # noqa: SIM201
]


@pytest.mark.parametrize(("condition", "rule"), CODE)
@pytest.mark.covers("SAFE-CHECK-06")
def test_slip_in_the_function_of_an_edge_is_refused(condition: Callable[..., Any], rule: str) -> None:
    flow = order()
    flow.edge("ask", "pay", when=condition)
    otherwise(flow)
    assert (rule, "error", "ask") in found(flow)


@pytest.mark.covers("SAFE-CHECK-06")
def test_slip_in_a_router_is_refused_when_its_lambda_chooses_by_a_condition() -> None:
    flow = order()
    flow.router("ask", lambda s: "no" if s.decision == "rejected" else "pay", ["pay", "no"])
    assert ("unknown-option", "error", "ask") in found(flow)


@pytest.mark.covers("SAFE-CHECK-06")
def test_truth_of_a_decision_is_a_warning_when_it_may_not_be_made_yet() -> None:
    flow = Flow("handler", state=Order, effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS)

    @flow.node
    def pay(s: Order) -> None:
        assert s.decision

    flow.edge("ask", pay)
    assert found(flow) == [("decision-truth", "warning", "pay")]


@pytest.mark.parametrize("awaits", [True, False])
@pytest.mark.covers("SAFE-CHECK-06")
def test_truth_of_an_answer_is_refused_with_and_without_await(awaits: bool) -> None:
    flow = Flow("asks", effect="pure")

    async def with_await(ctx: Context) -> None:
        reply = await ctx.ask("Pay?", options=["approve", "reject"])
        assert reply.decision

    async def without(ctx: Context) -> None:
        reply = ctx.ask("Pay?", options=["approve", "reject"])
        assert reply

    flow.script(id="work")(with_await if awaits else without)
    assert found(flow) == [("decision-truth", "error", "work")]


def test_single_braces_are_warned_about_when_the_state_is_not_typed() -> None:
    flow = Flow("untyped", effect="pure")

    @flow.node
    def price() -> dict[str, int]:
        return {"amount": 3}

    flow.hold("ask", prompt="Pay {amount}? {anything}", options=OPTIONS)
    flow.chain(price, "ask")
    assert found(flow) == [("single-braces", "warning", "ask")]
