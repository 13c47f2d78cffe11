"""Asking people: R-12, R-21 to R-31, RF-2, RF-4, RS-HITL, RS-MORE-7."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Worker
from holdfast.errors import AnswerInvalidError, HoldDecidedError
from holdfast.types.ids import RunId
from tests.flows.places import HOT, Place, answer, kinds, open_holds, told
from tests.runtime.people import Seen, State, approval, has_status, listed, step, until

pytestmark = pytest.mark.anyio


@pytest.mark.covers("RS-HITL-1", "RS-HITL-3", "RS-PAUSE-13", "R-24", "R-30")
async def test_an_approved_run_completes_and_repeats_no_step_before_the_question(hf: Holdfast) -> None:
    seen = Seen()
    flow = approval("approved", seen)

    waiting = await flow.run({"amount": 5}, on=hf)
    assert waiting.status == "pending_input"
    assert not {"run.completed", "run.failed"} & set(await kinds(hf, waiting))
    await answer(hf, waiting, "approve", comment="fine", by="user:ada")
    result = await flow.resume(waiting.run_id, on=hf)

    assert result.completed
    assert result.state["decision"] == "approve"
    assert seen.calls == ["before", "after"]
    assert (await kinds(hf, result)).count("run.completed") == 1


@pytest.mark.covers("RS-HITL-2")
async def test_what_stands_behind_the_approval_is_skipped_when_it_is_rejected(hf: Holdfast) -> None:
    seen = Seen()
    flow = approval("rejected", seen)
    waiting = await flow.run({"amount": 5}, on=hf)
    await answer(hf, waiting, "reject")

    result = await flow.resume(waiting.run_id, on=hf)

    assert result.completed
    assert seen.calls == ["before"]
    assert (await (await hf.service()).latest(result.run_id)).skipped == ["after"]


@pytest.mark.covers("R-23", "RF-2", "R-21", "RS-MORE-2")
async def test_the_question_is_there_when_the_process_dies_while_it_waits(place: Place) -> None:
    seen = Seen()
    flow = approval("killed", seen)
    run = await place.crash(flow, {"amount": 8}, "after_park")

    hf = await place.hf()
    (hold,) = await open_holds(hf, run)
    assert (hold.prompt, hold.node) == ("Pay 8?", "gate")
    newest = (await listed(hf, run))[0]
    assert (newest.id, newest.status) == (hold.id, "pending_input")

    await answer(hf, run, "approve")
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert seen.calls == ["before", "after"]


@pytest.mark.covers("R-23", "RF-2")
async def test_the_question_is_stored_while_the_run_waits_in_memory(place: Place) -> None:
    hf = await place.hf(HOT)
    flow = approval("in_memory", Seen())
    running = asyncio.create_task(flow.run({"amount": 8}, on=hf, run_id=None))
    other = await place.hf()
    service = await other.service()
    pending = await until(service.pending)
    row = await service.get(pending[0].run)
    assert row.worker is not None
    assert (await listed(other, row.id))[0].status == "pending_input"

    await service.answer(pending[0].checkpoint, "approve")
    assert (await running).completed


@pytest.mark.covers("RF-4")
@pytest.mark.parametrize("reply", ["", " ", None, "APPROVE!", "yes"])
async def test_a_question_stays_open_when_the_reply_is_empty_or_none_of_its_options(
    hf: Holdfast, reply: str | None
) -> None:
    seen = Seen()
    flow = approval("empty", seen)
    waiting = await flow.run({"amount": 5}, on=hf)
    service = await hf.service()

    with pytest.raises(AnswerInvalidError):
        await service.answer(waiting.holds[0].id, reply)

    result = await flow.resume(waiting.run_id, on=hf)
    assert result.status == "pending_input"
    assert seen.calls == ["before"]


@pytest.mark.covers("RF-4")
@pytest.mark.parametrize("reply", ["", "   ", None])
async def test_a_free_question_stays_open_when_the_reply_is_empty(hf: Holdfast, reply: str | None) -> None:
    flow = approval("free", Seen(), options=None, type="freeform")
    waiting = await flow.run({"amount": 5}, on=hf)
    with pytest.raises(AnswerInvalidError):
        await (await hf.service()).answer(waiting.holds[0].id, reply)
    assert [h.status for h in await open_holds(hf, waiting)] == ["pending"]


def two_questions(seen: Seen) -> Flow:
    flow = Flow("two_questions", effect="pure")

    @flow.script
    async def talk(s: State, ctx: Context) -> State:
        first = await ctx.ask("Same words?", options=["yes", "no"])
        seen.calls.append("between")
        second = await ctx.ask("Same words?", options=["yes", "no"])
        return {"answers": [first.decision, second.decision]}

    return flow


@pytest.mark.covers("R-27", "R-28", "RF-4", "R-31")
async def test_an_answer_reaches_only_its_question_when_two_have_the_same_words(place: Place) -> None:
    seen = Seen()
    flow = two_questions(seen)
    hf = await place.hf()
    waiting = await flow.run({}, on=hf)
    first = await answer(hf, waiting, "yes")

    waiting = await flow.resume(waiting.run_id, on=hf)

    assert waiting.status == "pending_input"
    (second,) = await open_holds(hf, waiting)
    assert second.id != first.id
    with pytest.raises(HoldDecidedError):
        await (await hf.service()).answer(first.id, "no")
    again = await flow.resume(waiting.run_id, on=await place.hf())
    assert [h.id for h in again.holds] == [second.id]
    await answer(hf, waiting, "no")
    result = await flow.resume(waiting.run_id, on=hf)
    assert result.state["answers"] == ["yes", "no"]
    assert len(await told(hf, result, "hold.opened")) == 2


@pytest.mark.covers("RF-4", "R-22", "R-27")
async def test_answers_reach_their_own_questions_when_parallel_nodes_ask_at_once(hf: Holdfast) -> None:
    flow = Flow("parallel_asks", effect="pure")

    def asking(name: str) -> Any:
        async def ask(ctx: Context) -> State:
            return {name: (await ctx.ask(f"{name}?", options=["yes", "no"])).decision}

        return flow.script(id=name)(ask)

    for name in ("left", "middle", "right"):
        asking(name)
    waiting = await flow.run({}, on=hf)
    service = await hf.service()
    by_node = {h.node: h.id for h in waiting.holds}
    assert len(set(by_node.values())) == 3
    await service.answer(by_node["right"], "no")
    await service.answer(by_node["left"], "yes")

    waiting = await flow.resume(waiting.run_id, on=hf)
    assert [h.node for h in waiting.holds] == ["middle"]
    assert (waiting.state["right"], waiting.state["left"]) == ("no", "yes")

    await service.answer(by_node["middle"], "no")
    result = await flow.resume(waiting.run_id, on=hf)
    assert result.state == {"left": "yes", "middle": "no", "right": "no"}


@pytest.mark.covers("R-26", "R-31")
async def test_an_answer_is_kept_and_nobody_is_asked_again_when_it_came_before_the_resume(
    place: Place,
) -> None:
    seen = Seen()
    flow = approval("early", seen)
    waiting = await flow.run({"amount": 1}, on=await place.hf())
    phone = await place.hf()
    await answer(phone, waiting, "approve", by="user:ada")
    for _ in range(2):
        # Workers die while they are about to use it.
        await _dies_after_claim(place, flow, waiting.run_id)

    hf = await place.hf()
    result = await flow.resume(waiting.run_id, on=hf)

    assert result.completed
    assert seen.calls == ["before", "after"]
    assert len(await told(hf, result, "hold.opened")) == 1


async def _dies_after_claim(place: Place, flow: Flow, run: str) -> None:
    from holdfast.testing.crashpoints import Crash, armed

    with armed("after_claim") as reached, pytest.raises(Crash):
        await flow.resume(run, on=await place.hf())
    assert reached.reached
    place.lapse()


@pytest.mark.covers("R-29", "RS-MORE-7")
async def test_questions_are_asked_and_answered_at_any_depth(place: Place) -> None:
    seen = Seen()
    inner = Flow("inner", effect="pure")
    check = step(inner, "check", seen)
    gate = inner.hold("gate", prompt="Deep?", options=["yes", "no"], bind="deep")
    inner.edge(check, gate)

    async def ask_item(item: str, ctx: Context) -> str:
        return f"{item}:{(await ctx.ask(f'Take {item}?', options=['yes', 'no'])).decision}"

    outer = Flow("outer", effect="pure")
    each = outer.map("each", over="items", body=ask_item, into="taken", effect="read")
    sub = outer.subflow("sub", inner, outputs={"deep": "state.deep"})

    @outer.script
    async def again(s: State, ctx: Context) -> State:
        turn = s.get("turn", 0)
        said = (await ctx.ask(f"Turn {turn}?", options=["yes", "no"])).decision
        return {"turn": turn + 1, "said": [*s.get("said", []), said]}

    outer.edge(each, sub)
    outer.edge(sub, again)
    outer.loop(again, again, when="turn < 2", max=3)
    waiting = await outer.run({"items": ["a", "b"]}, on=await place.hf(), run_id=None)
    asked: list[str] = []
    while waiting.status == "pending_input":
        hf = await place.hf()
        for hold in await open_holds(hf, waiting):
            asked.append(hold.prompt)
            await (await hf.service()).answer(hold.id, "yes" if len(asked) % 2 else "no")
        waiting = await outer.resume(waiting.run_id, on=hf)

    assert sorted(asked[:2]) == ["Take a?", "Take b?"]
    assert asked[2:] == ["Deep?", "Turn 0?", "Turn 1?"]
    assert waiting.completed
    assert sorted(waiting.state["taken"]) != sorted(waiting.state["items"])
    assert (waiting.state["deep"], waiting.state["said"]) == ("yes", ["no", "yes"])
    assert seen.count("check") == 1


@pytest.mark.covers("R-12", "RS-HITL-4")
@pytest.mark.parametrize("kind", ["approval", "freeform"])
async def test_a_wait_that_outlasts_its_process_is_pending_and_resumes_with_the_answer(
    place: Place, kind: str
) -> None:
    """The proposal's timeout is that of the process: ours parks, whatever was asked."""
    seen = Seen()
    flow = Flow("outlasts", effect="pure")
    before = step(flow, "before", seen)

    @flow.script
    async def feedback(ctx: Context) -> State:
        options = ["approve", "reject"] if kind == "approval" else None
        return {"said": (await ctx.ask("What do you say?", options=options)).decision}

    flow.edge(before, feedback)
    hf = await place.hf()
    waiting = await flow.run({}, on=hf)

    row = await (await hf.service()).get(waiting.run_id)
    assert (row.status, row.worker, row.error) == ("pending_input", None, None)
    newest = (await listed(hf, waiting.run_id))[0]
    assert (newest.id, newest.status) == (waiting.holds[0].id, "pending_input")
    place.clock.advance(days=9)
    words = "approve" if kind == "approval" else "more salt"
    await answer(hf, waiting, words)
    result = await flow.resume(waiting.run_id, on=await place.hf())
    assert result.completed
    assert result.state["said"] == words
    assert seen.count("before") == 1


@pytest.mark.covers("R-24", "R-25", "R-62")
@pytest.mark.parametrize("hot", [0.0, 30.0])
async def test_events_and_result_are_the_same_when_the_wait_is_hot_or_cold(place: Place, hot: float) -> None:
    flow = approval("hot_or_cold", Seen())
    hf = await place.hf()
    service = await hf.service()
    row, _ = await service.create(flow.program(), {"amount": 2})
    worker = Worker(flow, on=hf, hot_hold=hot, poll=0.02)
    async with worker:
        pending = await until(service.pending)
        if not hot:
            await until(lambda: has_status(service, row.id, "pending_input"))
        assert (row.id in worker._worker.runtime.drivers) is bool(hot)  # type: ignore[union-attr]
        await service.answer(pending[0].checkpoint, "approve")
        await until(lambda: has_status(service, row.id, "completed"))
    story = [k for k in await kinds(hf, row.id) if k not in ("run.resumed", "hold.asked_again")]
    assert story == [
        "run.created", "node.started", "checkpoint.created",
        "node.completed", "edge.taken", "node.started", "checkpoint.created",
        "hold.opened", "checkpoint.created", "hold.resolved",
        "node.completed", "edge.taken", "node.started", "checkpoint.created",
        "node.completed", "checkpoint.created", "run.completed", "checkpoint.created",
    ]  # fmt: skip


@pytest.mark.covers("R-17", "R-24", "R-62")
@pytest.mark.parametrize("hot", [0.0, 30.0])
async def test_who_resumes_is_asked_again_when_the_wait_is_hot_or_cold(place: Place, hot: float) -> None:
    """A browser that is back within seconds sees what one sees that is back after days."""
    flow = approval("back_soon", Seen())
    hf = await place.hf()
    service = await hf.service()
    row, _ = await service.create(flow.program(), {"amount": 2})
    async with Worker(flow, on=hf, hot_hold=hot, poll=0.02) as worker:
        (waiting,) = await until(service.pending)
        await until(lambda: has_status(service, row.id, "pending_input"))
        if not hot:
            await until(lambda: _is_out(worker, row.id))
        before = len(await kinds(hf, row.id))
        await service.request_resume(row.id)
        await until(lambda: _told(hf, row.id, "hold.asked_again"))
        assert (await kinds(hf, row.id))[before:] == ["run.resumed", "hold.asked_again"]
        (again,) = await told(hf, row.id, "hold.asked_again")
        assert (again.data["is_resumed"], again.data["hold_id"]) == (True, waiting.checkpoint)
        await until(lambda: has_status(service, row.id, "pending_input"))
        await service.answer(waiting.checkpoint, "approve")
        await until(lambda: has_status(service, row.id, "completed"))


async def _is_out(worker: Worker, run: RunId) -> bool:
    return run not in worker._worker.runtime.drivers  # type: ignore[union-attr]


async def _told(hf: Holdfast, run: RunId, kind: str) -> bool:
    return kind in await kinds(hf, run)
