"""The six ready-made questions: their forms, urgency, deadlines and typed answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import AnswerInvalidError, Context, Flow, Holdfast, Result, RunStatus
from holdfast.errors import InputError
from holdfast.holds.interactions.answers import answer_of, reply_to
from holdfast.holds.interactions.builders import (
    approval,
    clarification,
    escalation,
    feedback,
    progress,
    review,
)
from holdfast.holds.interactions.question import KINDS, InteractionQuestion
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.terms import operator

pytestmark = pytest.mark.anyio

MINUTE = 60 * MICROS

QUESTIONS = {
    "approval": approval("Pay 250?", consequences="250 are gone", alternatives={"half": "Pay half"}),
    "clarification": clarification("Which account?", options=["main", "savings"]),
    "review": review("Dear all,", focus=["tone"], timeout="1h"),
    "escalation": escalation("low_confidence", "I do not know", attempts=["asked twice"], agent="bot"),
    "progress": progress("Import", share=0.4, completed=["a"], upcoming=["b"]),
    "feedback": feedback("How was it?", agent="bot"),
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(auto=True)


@pytest.fixture
def hf(clock: FakeClock) -> Holdfast:
    return Holdfast("memory:", clock=clock)


def inside(question: InteractionQuestion) -> Flow:
    flow = Flow("inside")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        found = reply_to(question, await ctx.ask(**question.for_ask()))
        return {"got": {name: getattr(found, name) for name in found.__struct_fields__}}

    return flow


def outside(question: InteractionQuestion) -> Flow:
    flow = Flow("outside", effect="pure")
    flow.hold("asks", **question.for_hold())

    @flow.node
    async def after(s: Any) -> dict[str, Any]:
        found = answer_of(question.kind, s["decision_result"], question.context)
        return {"got": {name: getattr(found, name) for name in found.__struct_fields__}}

    flow.start("asks")
    flow.edge("asks", after)
    return flow


async def resolve(hf: Holdfast, result: Result, decision: str, **data: Any) -> None:
    service = await hf.holds()
    await service.resolve(operator("user:dana"), result.holds[0].id, decision=decision, response_data=data)


ANSWERS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "approval": (
        "approve",
        {"alternative": "half", "instructions": "slowly", "modifications": {"output": "x"}, "feedback": "ok"},
        {"approved": True, "alternative": "half", "instructions": "slowly", "modifications": {"output": "x"},
         "feedback": "ok"},
    ),
    "clarification": ("freeform", {"text": "the third"}, {"option": None, "text": "the third"}),
    "review": (
        "edit",
        {"content": "Hello everybody!", "summary": "warmer"},
        {"content": "Hello everybody!", "changed": True, "significant": True, "summary": "warmer"},
    ),
    "escalation": (
        "delegate",
        {"target": "clerk", "instructions": "take care"},
        {"action": "delegate", "target": "clerk", "instructions": "take care"},
    ),
    "progress": (
        "modify",
        {"goal": "less", "skip": ["b"], "parameters": {"n": 1}},
        {"action": "modify", "goal": "less", "skip": ["b"], "parameters": {"n": 1}},
    ),
    "feedback": (
        "give",
        {"text": "well done", "kind": "praise", "aspect": "speed", "importance": 5},
        {"text": "well done", "kind": "praise", "aspect": "speed", "importance": 5},
    ),
}  # fmt: skip


@pytest.mark.covers("G-46", "HOLD-LIFE-14")
@pytest.mark.parametrize("asked", [inside, outside])
@pytest.mark.parametrize("kind", KINDS)
async def test_each_question_is_asked_and_answered_with_a_type(hf: Holdfast, kind: str, asked: Any) -> None:
    flow = asked(QUESTIONS[kind])
    result = await flow.run({}, on=hf)
    (hold,) = result.holds
    assert (hold.type, hold.terms.interaction) == (kind, kind)
    decision, data, expected = ANSWERS[kind]
    await resolve(hf, result, decision, **data)
    done = await flow.resume(result.run_id, on=hf)
    assert done.completed, done.error
    got = done.state["got"]
    assert {name: got[name] for name in expected} == expected
    assert got["decided_by"] == "user:dana"


@pytest.mark.covers("G-46", "HOLD-LIFE-14")
@pytest.mark.parametrize(
    ("question", "priority"),
    [
        (approval("?", severity="critical"), "critical"),
        (approval("?", severity="high"), "high"),
        (approval("?", severity="medium"), "normal"),
        (approval("?", severity="low"), "normal"),
        (clarification("?"), "normal"),
        (review("x", confidence=0.49), "high"),
        (review("x", confidence=0.5), "normal"),
        (review("x"), "normal"),
        (escalation("safety_concern", "?", urgency="critical"), "critical"),
        (escalation("safety_concern", "?", urgency="medium"), "normal"),
        (progress("p", share=0.1, issues=["slow"]), "high"),
        (progress("p", share=0.1), "low"),
    ],
)
async def test_each_question_is_as_urgent_as_its_rule_says(
    hf: Holdfast, question: InteractionQuestion, priority: str
) -> None:
    result = await inside(question).run({}, on=hf)
    assert result.holds[0].priority == priority
    # Whoever is told of it is told with that urgency.
    store = await hf.open()
    (message,) = [m for m in await store.list_outbox(hold=result.holds[0].id) if m.topic == "hold.created"]
    assert json.loads(message.payload)["hold"] == result.holds[0].id


async def later(hf: Holdfast, clock: FakeClock, flow: Flow, result: Result, minutes: int) -> Result:
    clock.advance(minutes=minutes)
    await (await hf.service()).runtime.sweeper.sweep()
    return await flow.resume(result.run_id, on=hf)


@pytest.mark.covers("G-46", "HOLD-LIFE-14", "G-47")
async def test_an_approval_fails_after_five_minutes(hf: Holdfast, clock: FakeClock) -> None:
    flow = inside(approval("?"))
    result = await flow.run({}, on=hf)
    assert result.holds[0].expires_at == result.holds[0].created_at + 5 * MINUTE
    assert (await later(hf, clock, flow, result, 4)).status is RunStatus.pending_input
    done = await later(hf, clock, flow, result, 2)
    assert done.status is RunStatus.failed
    assert done.error.code == "hold_expired"


@pytest.mark.covers("G-46", "HOLD-LIFE-14", "G-47")
async def test_an_approval_is_refused_by_the_system_where_that_is_wanted(
    hf: Holdfast, clock: FakeClock
) -> None:
    flow = inside(approval("?", auto_reject=True, timeout="1m"))
    result = await flow.run({}, on=hf)
    got = (await later(hf, clock, flow, result, 2)).state["got"]
    assert (got["approved"], got["decided_by"]) == (False, "system")


@pytest.mark.covers("G-46", "HOLD-LIFE-14")
async def test_a_clarification_that_nobody_gives_is_an_error(hf: Holdfast, clock: FakeClock) -> None:
    flow = inside(clarification("?", timeout="1m"))
    done = await later(hf, clock, flow, await flow.run({}, on=hf), 2)
    assert done.error.code == "hold_expired"


@pytest.mark.covers("G-46", "HOLD-LIFE-14")
@pytest.mark.parametrize("asked", [inside, outside])
async def test_a_review_that_nobody_makes_leaves_the_text_as_it_was(
    hf: Holdfast, clock: FakeClock, asked: Any
) -> None:
    flow = asked(review("Dear all,", timeout="1m"))
    got = (await later(hf, clock, flow, await flow.run({}, on=hf), 2)).state["got"]
    assert (got["content"], got["changed"], got["decided_by"]) == ("Dear all,", False, "system")


@pytest.mark.covers("G-46", "HOLD-LIFE-14")
@pytest.mark.parametrize("question", [QUESTIONS["escalation"], QUESTIONS["progress"]])
async def test_some_questions_wait_for_ever(
    hf: Holdfast, clock: FakeClock, question: InteractionQuestion
) -> None:
    flow = inside(question)
    result = await flow.run({}, on=hf)
    assert result.holds[0].expires_at is None
    assert (await later(hf, clock, flow, result, 60 * 24 * 365)).status is RunStatus.pending_input


@pytest.mark.covers("G-46")
@pytest.mark.parametrize(
    ("decision", "data"),
    [("other", {}), ("freeform", {}), ("freeform", {"text": ""}), ("main", {"text": "and more"}), ("", {})],
)
async def test_an_answer_that_is_neither_an_option_nor_a_text_is_refused(
    hf: Holdfast, decision: str, data: dict[str, Any]
) -> None:
    flow = inside(QUESTIONS["clarification"])
    result = await flow.run({}, on=hf)
    with pytest.raises(AnswerInvalidError):
        await resolve(hf, result, decision, **data)
    await resolve(hf, result, "main")
    done = await flow.resume(result.run_id, on=hf)
    assert (done.state["got"]["option"], done.state["got"]["text"]) == ("main", None)


@pytest.mark.covers("G-46")
async def test_a_closed_question_takes_no_free_answer(hf: Holdfast) -> None:
    result = await inside(clarification("?", options=["a"], allow_freeform=False)).run({}, on=hf)
    with pytest.raises(AnswerInvalidError):
        await resolve(hf, result, "freeform", text="b")


@pytest.mark.covers("G-46")
@pytest.mark.parametrize(
    "make",
    [
        lambda: approval("?", severity="urgent"),
        lambda: approval("?", category="fun"),
        lambda: clarification("?", doubt="boredom"),
        lambda: clarification("?", allow_freeform=False),
        lambda: clarification("?", options=["freeform"]),
        lambda: review("x", content_type="video"),
        lambda: escalation("bored", "?"),
        lambda: progress("p", share=1.2),
        lambda: answer_of("riddle", {}),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()
