"""Slips in code around an approval: a caught wait, a call without `await`, a condition that is no answer."""

from __future__ import annotations

import asyncio
import inspect
import operator
import time
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Actor, Context, Flow, Holdfast, Policy, Rule, RunStatus
from holdfast.errors import PolicyInvalidError
from holdfast.runs.context.context import Context as RunContext
from holdfast.types.terms import ApprovalTerms
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio
OPTIONS = ["approve", "reject"]
PERSON = Actor(id="user:dana", rights=frozenset({"holds:manage"}))


class Bank:
    """What was paid by recorded steps."""

    def __init__(self) -> None:
        self.paid = 0

    def pay(self) -> None:
        self.paid += 1


async def _bare_except(ctx: Context, bank: Bank) -> None:
    try:
        decision = (await ctx.ask("Pay?", options=OPTIONS)).decision
    except:  # noqa: E722
        decision = "approve"
    if decision == "approve":
        await ctx.step("pay", bank.pay)


async def _return_in_finally(ctx: Context, _bank: Bank) -> None:
    try:
        await ctx.ask("Pay?", options=OPTIONS)
    finally:
        return  # noqa: B012


async def _step_in_finally(ctx: Context, bank: Bank) -> None:
    answer = ""
    try:
        answer = (await ctx.ask("Pay?", options=OPTIONS)).decision
    finally:
        if answer != "reject":
            await ctx.step("pay", bank.pay)


async def _another_error(ctx: Context, _bank: Bank) -> None:
    try:
        await ctx.ask("Pay?", options=OPTIONS)
    except BaseException as error:
        raise ValueError("it went wrong") from error


async def _gathered(ctx: Context, bank: Bank) -> None:
    asked = [ctx.ask("One?", options=OPTIONS), ctx.ask("Two?", options=OPTIONS)]
    try:
        answers = [reply.decision for reply in await asyncio.gather(*asked)]
    except BaseException:
        answers = ["approve"]
    if "reject" not in answers:
        await ctx.step("pay", bank.pay)


async def _caught_sleep(ctx: Context, bank: Bank) -> None:
    try:
        await ctx.sleep(3600)
    except BaseException:
        await ctx.step("pay", bank.pay)


def _in_thread(ctx: Any, bank: Bank) -> None:
    try:
        decision = ctx.ask("Pay?", options=OPTIONS).decision
    except:  # noqa: E722
        decision = "approve"
    if decision == "approve":
        ctx.step("pay", bank.pay)


CAUGHT = [
    _bare_except,
    _return_in_finally,
    _step_in_finally,
    _another_error,
    _gathered,
    _caught_sleep,
    _in_thread,
]


@pytest.mark.parametrize("code", CAUGHT)
@pytest.mark.covers("SAFE-HANDLER-08")
async def test_run_waits_when_its_code_catches_the_end_of_its_wait(
    code: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    bank, flow = Bank(), Flow("caught")
    if inspect.iscoroutinefunction(code):

        @flow.script
        async def work(ctx: Context) -> None:
            await code(ctx, bank)
    else:

        @flow.script(id="work")
        def plain(ctx: Context) -> None:
            code(ctx, bank)

    async with Holdfast("memory:") as hf:
        result = await flow.run(on=hf)
        assert result.status in (RunStatus.pending_input, RunStatus.waiting)
        assert bank.paid == 0
        assert any("continued after its wait had been ended" in r.getMessage() for r in caplog.records)
        holds = await hf.holds()
        for hold in result.holds:
            await holds.resolve(PERSON, hold.id, "reject")
        if result.holds:
            result = await asyncio.wait_for(flow.resume(result.run_id, on=hf), HANG)
            assert (result.completed, bank.paid) == (True, 0)


def _calls(ctx: Any, flow: Flow) -> dict[str, Callable[[], Any]]:
    """Every call of a context that has to be awaited."""
    return {
        "ask": lambda: ctx.ask("Pay?", options=OPTIONS),
        "step": lambda: ctx.step("pay", time.time),
        "sleep": lambda: ctx.sleep(1),
        "gather": lambda: ctx.gather(),
        "race": lambda: ctx.race(),
        "first": lambda: ctx.first(),
        "map": lambda: ctx.map(len, []),
        "start": lambda: ctx.start(flow),
        "call": lambda: ctx.call(flow),
        "wait_for": lambda: ctx.wait_for("paid"),
        "callback": lambda: ctx.callback("done"),
        "file": lambda: ctx.file({}),
        "made": lambda: ctx.made(),
        "committed": lambda: ctx.committed(),
    }


# Calls of the library's own parts.
_INNER = {"mark_turn", "run_item", "record", "wait_for_substeps"}


def test_every_call_that_has_to_be_awaited_is_in_the_table() -> None:
    found = {
        name
        for name, each in vars(RunContext).items()
        if not name.startswith("_")
        and inspect.iscoroutinefunction(inspect.unwrap(each) if callable(each) else each)
    }
    assert found - _INNER == set(_calls(None, Flow("x")))


@pytest.mark.parametrize("name", sorted(_calls(None, Flow("x"))))
@pytest.mark.covers("SAFE-HANDLER-08")
async def test_node_fails_when_it_calls_its_context_without_await(name: str) -> None:
    flow = Flow("forgotten")

    @flow.script
    async def work(ctx: Context) -> None:
        _calls(ctx, flow)[name]()

    async with Holdfast("memory:") as hf:
        result = await flow.run(on=hf)
    assert result.error is not None
    assert result.error.code == "script"
    assert f"called ctx.{name} without `await`" in result.error.message


async def test_calls_that_begin_later_are_no_slip() -> None:
    flow, done = Flow("later"), list[int]()

    @flow.script
    async def work(ctx: Context) -> None:
        made = [ctx.step(f"s{n}", done.append, n) for n in range(3)]
        await ctx.step("first", done.append, 9)
        await asyncio.gather(*made)

    async with Holdfast("memory:") as hf:
        assert (await flow.run(on=hf)).completed
    assert sorted(done) == [0, 1, 2, 9]


async def _coroutine(_s: Any) -> bool:
    return False


NO_ANSWERS: list[Callable[[Any], Any]] = [
    lambda s: s["decision"],
    lambda _s: "no",
    lambda s: _coroutine(s),
    lambda _s: None,
    lambda _s: [],
    lambda _s: 1,
]


@pytest.mark.parametrize("condition", NO_ANSWERS)
@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.covers("SAFE-CHECK-14")
async def test_run_fails_when_the_function_of_an_edge_returns_no_answer(
    condition: Callable[[Any], Any], loop: bool
) -> None:
    flow, paid = Flow("edge", effect="pure"), list[str]()
    flow.node(id="before")(lambda: None)
    flow.hold("ask", prompt="Pay?", options=OPTIONS)
    flow.node(id="pay")(lambda: paid.append("x"))
    flow.node(id="end")(lambda: None)
    flow.chain("before", "ask")
    if loop:
        flow.loop("ask", "before", when=condition)
        flow.edge("ask", "pay", otherwise=True)
    else:
        flow.edge("ask", "pay", when=condition)
        flow.edge("ask", "end", otherwise=True)
    async with Holdfast("memory:") as hf:
        result = await flow.run(on=hf)
        await (await hf.holds()).resolve(PERSON, result.holds[0].id, "reject")
        result = await flow.resume(result.run_id, on=hf)
    assert result.error is not None
    assert (result.error.code, paid) == ("routing", [])
    assert "neither True nor False" in result.error.message


@pytest.mark.parametrize("condition", [lambda _f: "yes", lambda f: f["tags"], lambda f: _coroutine(f)])
@pytest.mark.covers("SAFE-CHECK-14")
async def test_rule_of_two_applies_when_its_function_returns_no_answer(
    condition: Callable[[Any], Any],
) -> None:
    two = ApprovalTerms(mode="quorum", need=2)
    policy = Policy("pair", Rule(name="two", when=condition, approval=two))
    flow = Flow("ruled", effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS)
    async with Holdfast("memory:", policies=policy) as hf:
        result = await flow.run(on=hf)
    assert result.holds[0].terms.approval.need == 2


async def test_reply_is_neither_true_nor_false_and_reads_as_its_decision() -> None:
    flow, seen = Flow("reply"), list[str]()

    @flow.script
    async def work(ctx: Context) -> None:
        reply = await ctx.ask("Pay?", options=OPTIONS)
        seen.append(f"{reply}")
        if operator.truth(reply):  # the check of the flow does not see it
            seen.append("paid")

    async with Holdfast("memory:") as hf:
        result = await flow.run(on=hf)
        await (await hf.holds()).resolve(PERSON, result.holds[0].id, "reject")
        result = await flow.resume(result.run_id, on=hf)
    assert seen == ["reject"]
    assert result.error is not None
    assert "compare it with an option" in result.error.message


@pytest.mark.covers("SAFE-CHECK-15")
def test_rule_is_refused_when_it_needs_two_and_one_decides() -> None:
    with pytest.raises(PolicyInvalidError, match="by the mode `any` one person decides"):
        Policy("pair", Rule(name="two", approval=ApprovalTerms(need=2)))


@pytest.mark.parametrize("approval", [{"need": 2}, {"mode": "any", "need": 3}, {"policy": {"need": 2}}])
@pytest.mark.covers("SAFE-CHECK-15")
def test_hold_is_refused_when_it_needs_two_and_one_decides(approval: dict[str, Any]) -> None:
    flow = Flow("two", effect="pure")
    flow.hold("ask", prompt="Pay?", options=OPTIONS, approval=approval)
    (problem,) = [p for p in flow.problems() if p.rule == "hold-approval"]
    assert "by its mode `any` one decides" in problem.message


@pytest.mark.covers("SAFE-CHECK-15")
@pytest.mark.parametrize(
    ("key", "why"), [("pay-{order_id}", "as plain text"), ("", "is empty"), (" ", "is empty")]
)
async def test_step_is_refused_when_its_key_would_be_the_same_in_every_run(key: str, why: str) -> None:
    flow, done = Flow("key"), list[int]()

    @flow.script
    async def work(ctx: Context) -> None:
        await ctx.step("pay", done.append, 1, idempotency_key=key)

    async with Holdfast("memory:") as hf:
        result = await flow.run(on=hf)
    assert result.error is not None
    assert (why in result.error.message, done) == (True, [])
