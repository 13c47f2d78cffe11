"""Slips around the questions of scripts, which weaken an approval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, Flow
from tests.unit.frontends.test_approval_slips import found


@dataclass
class Payment:
    amount: int = 0


async def pays(amount: int = 0) -> None: ...


async def _for_nobody(s: Payment, ctx: Context) -> None:
    r = await ctx.ask("Pay?", options=["approve", "reject"], assignee="grp:finance")
    if r.decision == "approve":
        await ctx.step("pay", pays, effect="external")


async def _for_a_group(s: Payment, ctx: Context) -> None:
    r = await ctx.ask("Pay?", options=["approve", "reject"], assignee="group:finance")
    if r.decision == "approve":
        await ctx.step("pay", pays, effect="external")


async def _veto_alone(s: Payment, ctx: Context) -> None:
    rule = {"mode": "quorum", "need": 2, "of": ["user:a", "user:b"], "veto": ["user:c"]}
    r = await ctx.ask("Pay?", options=["approve", "reject"], approval=rule)
    if r.decision == "approve":
        await ctx.step("pay", pays, effect="external")


async def _veto_written_out(s: Payment, ctx: Context) -> None:
    r = await ctx.ask(
        "Pay?",
        options=["approve", "reject"],
        approval={"mode": "quorum", "need": 2, "of": ["user:a", "user:b"], "veto": ["user:c"]},
    )
    if r.decision == "approve":
        await ctx.step("pay", pays, effect="external")


async def _late_is_yes(s: Payment, ctx: Context) -> None:
    r = await ctx.ask(
        "Pay?", options=["approve", "reject"], timeout="1d", on_timeout="default", default_option="approve"
    )
    if r.decision == "approve":
        await ctx.step("pay", pays, effect="external")


async def _late_is_no(s: Payment, ctx: Context) -> None:
    r = await ctx.ask(
        "Pay?", options=["approve", "reject"], timeout="1d", on_timeout="default", default_option="reject"
    )
    if r.decision == "approve":
        await ctx.step("pay", pays, effect="external")


async def _error_is_yes(s: Payment, ctx: Context) -> None:
    try:
        decision = (await ctx.ask("Pay?", options=["approve", "reject"], timeout="1d")).decision
    except Exception:
        decision = "approve"
    if decision == "approve":
        await ctx.step("pay", pays, effect="external")


async def _error_is_no(s: Payment, ctx: Context) -> None:
    try:
        decision = (await ctx.ask("Pay?", options=["approve", "reject"], timeout="1d")).decision
    except Exception:
        decision = "reject"
    if decision == "approve":
        await ctx.step("pay", pays, effect="external")


async def _only_logs(s: Payment, ctx: Context) -> None:
    r = await ctx.ask("Pay?", options=["approve", "reject"])
    if r.decision == "reject":
        print("rejected")
    await ctx.step("pay", pays, effect="external")


async def _returns(s: Payment, ctx: Context) -> None:
    r = await ctx.ask("Pay?", options=["approve", "reject"])
    if r.decision == "reject":
        print("rejected")
        return
    await ctx.step("pay", pays, effect="external")


async def _tells_either_way(s: Payment, ctx: Context) -> None:
    r = await ctx.ask("Pay?", options=["approve", "reject"])
    if r.decision == "approve":
        await ctx.step("pay", pays, effect="external")
    await ctx.step("tell", pays, effect="external")


async def _sets_the_amount(s: Payment, ctx: Context) -> None:
    r = await ctx.ask("Pay?", options=["approve", "reject"])
    amount = 100
    if r.decision == "reject":
        amount = 0
    await ctx.step("pay", lambda: pays(amount), effect="external")


async def _pays_the_old_amount(s: Payment, ctx: Context) -> None:
    r = await ctx.ask(
        "Pay?",
        options=["approve", "reject"],
        form={"type": "object", "properties": {"amount": {"type": "integer"}}},
    )
    if r.decision == "approve":
        await ctx.step("pay", lambda: pays(s.amount), effect="external")


async def _pays_what_was_filled_in(s: Payment, ctx: Context) -> None:
    r = await ctx.ask(
        "Pay?",
        options=["approve", "reject"],
        form={"type": "object", "properties": {"amount": {"type": "integer"}}},
    )
    if r.decision == "approve":
        await ctx.step("pay", lambda: pays(r.data["amount"] or s.amount), effect="external")


async def _hands_the_reply_on(s: Payment, ctx: Context) -> None:
    r = await ctx.ask(
        "Pay?",
        options=["approve", "reject"],
        form={"type": "object", "properties": {"amount": {"type": "integer"}}},
    )
    print(r, s.amount)
    if r.decision == "approve":
        await ctx.step("pay", pays, effect="external")


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("code", "rule"),
    [
        (_for_nobody, "assignee"),
        (_for_a_group, None),
        (_veto_written_out, "veto-seat"),
        (_veto_alone, None),  # a variable is not followed
        (_late_is_yes, "approving-default"),
        (_late_is_no, None),
        (_error_is_yes, "approving-default"),
        (_error_is_no, None),
        (_only_logs, "decision-unread"),
        (_returns, None),
        (_tells_either_way, None),
        (_sets_the_amount, None),
        (_pays_the_old_amount, "form-unread"),
        (_pays_what_was_filled_in, None),
        (_hands_the_reply_on, None),
    ],
)
def test_script_is_warned_about_when_its_question_is_weakened(code: Any, rule: str | None) -> None:
    flow = Flow("payment", state=Payment, effect="pure")
    flow.script(id="ask")(code)
    assert found(flow) == ([(rule, "warning", "ask")] if rule else [])
