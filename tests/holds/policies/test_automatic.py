"""Holds that are decided without a person: by a rule, or by a judge that is sure enough. Else by people."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, RunStatus, Worker
from holdfast.holds.policies.judge import Judgement, auto_approve, auto_reject
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.rules import Rule
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.outbox import OutboxState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator
from tests.deadlines import HANG
from tests.flows.places import RUN
from tests.holds.policies.conftest import MakeHoldfast
from tests.holds.policies.flows import actions, decide, given, hold_of, refund, said

pytestmark = pytest.mark.anyio


def judged(judge: Any, **rule: Any) -> Policy:
    return Policy("p", Rule(name="r", judge="j", **rule), judges={"j": judge})


@pytest.mark.covers("G-42", "HOLD-POL-01")
async def test_a_rule_accepts_and_the_run_goes_on_at_once(make_hf: MakeHoldfast) -> None:
    rule = Rule(name="small", when="amount < 50", decide="approve", reason="small change")
    hf = await make_hf(policies=Policy("refunds", rule))
    result = await refund().run(given(7), on=hf)
    assert result.completed
    assert result.state["paid"] is True
    kept = await said(hf, result)
    assert (kept["decision"], kept["decided_by"], kept["comment"]) == (
        "approve",
        "auto-accept",
        "small change",
    )
    row = await hold_of(hf, result.run_id)
    assert (row.status, row.resolved_by) == (HoldStatus.resolved, "policy:refunds/small")
    assert await actions(hf, row.id) == ["created", "resolved"]
    other = await refund().run(given(70), on=hf)
    assert other.status is RunStatus.pending_input


@pytest.mark.covers("G-42")
@pytest.mark.parametrize("reason", ["", "over the limit"])
async def test_a_rule_rejects_with_a_reason_and_the_node_still_succeeds(
    make_hf: MakeHoldfast, reason: str
) -> None:
    hf = await make_hf(policies=Policy("p", Rule(name="r", decide="reject", reason=reason)))
    result = await refund().run(given(7), on=hf)
    assert result.completed
    assert result.state["paid"] is False
    kept = await said(hf, result)
    assert (kept["decided_by"], kept["comment"]) == ("auto-reject", reason or "Auto-rejected")


@pytest.mark.covers("G-42", "G-47")
async def test_the_word_of_a_rule_is_the_holds_own(make_hf: MakeHoldfast) -> None:
    options = [{"id": "pay_out", "label": "Pay", "variant": "primary"}, {"id": "no", "label": "No"}]
    flow = refund(options=options, yes="pay_out")
    hf = await make_hf(policies=judged(auto_reject("never")))
    kept = await said(hf, await flow.run(given(7), on=hf))
    assert (kept["decision"], kept["comment"], kept["decided_by"]) == ("no", "never", "auto-reject")
    hf = await make_hf(policies=judged(auto_approve))
    kept = await said(hf, await flow.run(given(7), on=hf))
    assert (kept["decision"], kept["decided_by"]) == ("pay_out", "auto-accept")


@pytest.mark.covers("G-42", "HOLD-POL-02")
async def test_a_judge_decides_where_it_is_sure_enough(make_hf: MakeHoldfast) -> None:
    asked: list[Any] = []

    async def judge(facts: Any) -> dict[str, Any]:
        asked.append(facts)
        return {"approved": facts["context"]["amount"] < 50, "confidence": 0.7, "reasoning": "by amount"}

    hf = await make_hf(policies=judged(judge))
    result = await refund().run(given(7), on=hf)
    kept = await said(hf, result)
    assert (kept["decision"], kept["confidence"], kept["comment"]) == ("approve", 0.7, "by amount")
    assert (await said(hf, await refund().run(given(70), on=hf)))["decision"] == "reject"
    assert [facts["prompt"] for facts in asked] == ["Refund 7 to c-9?", "Refund 70 to c-9?"]


async def hangs(_facts: Any) -> Any:
    await asyncio.sleep(60)


def raises(_facts: Any) -> Any:
    raise RuntimeError("out of order")


UNSURE: dict[str, Any] = {
    "not sure": lambda _: Judgement("approve", 0.69),
    "nan": lambda _: Judgement("approve", float("nan")),
    "too sure": lambda _: {"approved": True, "confidence": 7},
    "no confidence": lambda _: {"approved": True},
    "confidence is text": lambda _: {"approved": True, "confidence": "0.9"},
    "approved is text": lambda _: {"approved": "yes", "confidence": 0.9},
    "another option": lambda _: "maybe",
    "nothing": lambda _: None,
    "empty": lambda _: " ",
    "error": raises,
    "hangs": hangs,
}


@pytest.mark.covers("G-42", "HOLD-POL-02")
@pytest.mark.parametrize("trouble", UNSURE)
async def test_a_judge_that_is_not_sure_leaves_it_to_people(make_hf: MakeHoldfast, trouble: str) -> None:
    hf = await make_hf(policies=judged(UNSURE[trouble], judge_timeout=0.05, assign="role:lead"))
    result = await refund().run(given(7), on=hf)
    assert result.status is RunStatus.pending_input
    (hold,) = result.holds
    assert hold.assignee == "role:lead"
    assert await actions(hf, hold.id) == ["created", "left_to_people"]
    await decide(hf, hold.id, "approve")
    assert (await refund().resume(result.run_id, on=hf)).state["paid"] is True
    assert (await said(hf, result)).get("decided_by") != "auto-accept"


@pytest.mark.covers("HOLD-POL-02")
async def test_a_judge_is_not_asked_again_until_it_likes_it(make_hf: MakeHoldfast) -> None:
    asked: list[float] = []

    def wavers(_facts: Any) -> Judgement:
        asked.append(0.5 + len(asked) / 2)
        return Judgement("approve", asked[-1])

    hf = await make_hf(policies=judged(wavers))
    result = await refund().run(given(7), on=hf)
    arbiter = (await hf.service()).runtime.arbiter
    assert arbiter is not None
    await arbiter.work()
    await refund().resume(result.run_id, on=hf)
    assert asked == [0.5]
    assert (await hold_of(hf, result.run_id)).status is HoldStatus.pending
    store = await hf.open()
    (message,) = [m for m in await store.list_outbox() if m.topic == "hold.judge"]
    assert message.state is OutboxState.skipped


@pytest.mark.covers("HOLD-POL-02")
async def test_a_judge_that_comes_second_changes_nothing(make_hf: MakeHoldfast) -> None:
    hf = await make_hf()
    service = await hf.holds()

    async def slow(_facts: Any) -> str:
        (row,) = await (await hf.open()).holds(status=HoldStatus.pending)
        await service.resolve(operator("user:dana"), row.id, decision="reject")
        return "approve"

    other = await make_hf(policies=judged(slow))
    result = await refund().run(given(7), on=other)
    assert result.state["paid"] is False
    assert (await hold_of(other, result.run_id)).resolved_by == "user:dana"


@pytest.mark.covers("HOLD-POL-02")
async def test_several_arbiters_decide_once(make_hf: MakeHoldfast) -> None:
    policy = Policy("p", Rule(name="r", decide="approve"))
    hf = await make_hf(policies=policy)
    runtime = (await hf.service()).runtime
    arbiter, runtime.arbiter = runtime.arbiter, None
    assert arbiter is not None
    for _ in range(10):
        result = await refund().run(given(7), on=hf)
        hold = result.holds[0].id
        await asyncio.gather(*(arbiter.judge_now(hold) for _ in range(5)), arbiter.work())
        assert (await refund().resume(result.run_id, on=hf)).completed
        assert await actions(hf, hold) == ["created", "resolved"]


@pytest.mark.covers("HOLD-POL-02")
async def test_a_worker_judges_what_a_crash_left_unjudged(make_hf: MakeHoldfast) -> None:
    # It was asked where the judge was known, and the process died before it was judged.
    hf = await make_hf(policies=Policy("p", Rule(name="r", decide="approve")))
    service = await hf.service()
    runtime, service.runtime.arbiter = service.runtime, None
    result = await refund().run(given(7), on=hf)
    assert result.status is RunStatus.pending_input
    assert runtime.arbiter is None
    fresh = await make_hf(policies=Policy("p", Rule(name="r", decide="approve")))
    arbiter = (await fresh.service()).runtime.arbiter
    assert arbiter is not None
    assert await arbiter.work() == 1
    await Worker(refund(), on=fresh).run_until_idle()
    assert (await refund().resume(result.run_id, on=fresh)).completed
    assert (await said(fresh, result))["decided_by"] == "auto-accept"


@pytest.mark.covers("HOLD-POL-02")
async def test_a_serving_worker_judges_beside_its_runs(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'w.db'}"
    policy = Policy("p", Rule(name="r", decide="approve"))
    async with Holdfast(address, policies=policy) as hf:
        (await hf.service()).runtime.arbiter = None
        result = await refund().run(given(7), on=hf)
        assert result.status is RunStatus.pending_input
    async with Holdfast(address, policies=policy) as hf:
        ended = asyncio.Event()
        store = await hf.open()
        async with Worker(refund(), on=hf, poll=0.02), asyncio.timeout(HANG):
            while not ended.is_set():
                await store.wait_change(0.05)
                row = await store.get_run(result.run_id)
                if row is not None and row.status is RunStatus.completed:
                    ended.set()
        assert (await said(hf, result))["decided_by"] == "auto-accept"


@pytest.mark.covers("HOLD-POL-01", "HOLD-POL-02")
async def test_a_rule_that_changed_meanwhile_decides_nothing(make_hf: MakeHoldfast) -> None:
    hf = await make_hf(policies=Policy("p", Rule(name="r", when="amount < 50", decide="approve")))
    (await hf.service()).runtime.arbiter = None
    result = await refund().run(given(7), on=hf)
    for rule in (Rule(name="r", when="amount < 5", decide="approve"), Rule(name="r", assign="role:x")):
        later = await make_hf(policies=Policy("p", rule))
        arbiter = (await later.service()).runtime.arbiter
        assert arbiter is not None
        assert await arbiter.judge_now(result.holds[0].id) is None
    assert (await hold_of(hf, result.run_id)).status is HoldStatus.pending


@pytest.mark.covers("HOLD-POL-01")
@pytest.mark.parametrize(
    "terms",
    [
        {"approval": {"mode": "quorum", "need": 2, "of": ["group:finance"]}},
        {"approval": {"exclude": ["initiator"]}},
        {"strict_assignee": True},
        {"strict_assignee": True, "auto": "p"},
    ],
)
async def test_what_certain_people_have_to_decide_is_not_decided_by_a_rule(
    make_hf: MakeHoldfast, terms: dict[str, Any]
) -> None:
    hf = await make_hf(policies=Policy("p", Rule(name="r", decide="approve")))
    result = await refund(**terms).run(given(7), on=hf)
    assert result.status is RunStatus.pending_input
    assert result.holds[0].terms.auto in (None, terms.get("auto"))


@pytest.mark.covers("HOLD-POL-01")
async def test_a_form_with_required_fields_is_left_to_people(make_hf: MakeHoldfast) -> None:
    sections = [
        {"type": "input", "field": "iban", "required": True},
        {"type": "decision", "options": ["approve", "reject"]},
    ]
    hf = await make_hf(policies=Policy("p", Rule(name="r", decide="approve")))
    result = await refund(options=None, sections=sections).run(given(7), on=hf)
    assert result.status is RunStatus.pending_input
    assert "left_to_people" in await actions(hf, result.holds[0].id)


@pytest.mark.covers("HOLD-POL-01")
async def test_a_flow_names_the_policy_that_may_decide_it(make_hf: MakeHoldfast) -> None:
    flow = refund(auto="p")
    hf = await make_hf(policies=[
        Policy("route", Rule(name="all", assign="role:lead")),
        Policy("p", Rule(name="small", when="amount < 50", decide="approve")),
    ])  # fmt: skip
    assert (await flow.run(given(7), on=hf)).completed
    later = await flow.run(given(70), on=hf)
    assert later.holds[0].assignee == "role:lead"


@pytest.mark.covers("HOLD-POL-01")
async def test_no_rule_answers_whether_an_effect_happened(make_hf: MakeHoldfast) -> None:
    from holdfast import Flow

    flow = Flow("doubtful")

    @flow.node(effect="external")
    async def send() -> dict[str, Any]:
        raise ConnectionError("was it sent?")

    hf = await make_hf(policies=Policy("p", Rule(name="all", decide="approve", assign="role:lead")))
    result = await flow.run({}, on=hf)
    (hold,) = result.holds
    assert hold.type == "in_doubt"
    assert (hold.terms.auto, hold.terms.routed_by) == (None, None)


@pytest.mark.covers("HOLD-POL-02", "G-42")
async def test_history_tells_who_decided_and_why_people_were_asked(make_hf: MakeHoldfast) -> None:
    sure = iter((0.9, 0.2))
    hf = await make_hf(policies=judged(lambda _: Judgement("approve", next(sure))))
    service = await hf.holds()
    lines: list[Any] = []
    for _ in range(2):
        result = await refund().run(given(7), on=hf)
        row = await hold_of(hf, result.run_id)
        lines.append({each.action: each.data for each in await service.history(operator(), row.id)})
    assert (lines[0]["resolved"]["decided_by"], lines[0]["resolved"]["confidence"]) == ("judge", 0.9)
    assert lines[1]["left_to_people"] == {"rule": "p/r", "why": "the judge's confidence of 0.2 is below 0.7"}


@pytest.mark.covers("HOLD-POL-02")
@pytest.mark.parametrize("point", ["after_settle", "after_answer"])
async def test_a_rule_decides_once_whenever_the_process_dies(
    make_hf: MakeHoldfast, clock: FakeClock, point: str
) -> None:
    policy = Policy("p", Rule(name="r", decide="approve"))
    hf = await make_hf(policies=policy)
    with armed(point), pytest.raises(Crash):
        await refund().run(given(7), on=hf, run_id=RUN)
    clock.advance(minutes=5)
    fresh = await make_hf(policies=policy)
    assert (await refund().resume(RUN, on=fresh)).state["paid"] is True
    arbiter = (await fresh.service()).runtime.arbiter
    assert arbiter is not None
    await arbiter.work()
    row = await hold_of(fresh, RUN)
    assert (await actions(fresh, row.id)).count("resolved") == 1
    waiting = await (await fresh.open()).list_outbox(state=OutboxState.waiting)
    assert [message.topic for message in waiting if message.topic == "hold.judge"] == []


@pytest.mark.parametrize("condition", ["not amuont > 1000", "amuont != 5000", "not amount > '1000'"])
@pytest.mark.covers("SAFE-CHECK-10")
async def test_people_decide_when_the_rule_reads_what_the_hold_does_not_have(
    make_hf: MakeHoldfast, condition: str
) -> None:
    rule = Rule(name="small", when=condition, decide="approve")
    hf = await make_hf(policies=Policy("refunds", rule))
    result = await refund().run(given(5000), on=hf)
    assert result.status is RunStatus.pending_input
