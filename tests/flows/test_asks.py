from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from holdfast import Context, Flow, HoldDecidedError, Holdfast, RunSettings, RunStatus
from holdfast.errors import HoldExpiredError, RunError
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.ids import RunId, derived_id
from holdfast.types.record import Kind
from holdfast.types.status import HoldStatus
from tests.deadlines import HANG
from tests.flows.places import COLD, HOT, RUN, Place, answer, kinds, open_holds, told

pytestmark = pytest.mark.anyio


def two_questions(log: list[str]) -> Flow:
    flow = Flow("two")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        log.append("entered")
        first = await ctx.ask("First?", options=["a", "b"])
        second = await ctx.ask("Second?", options=["a", "c"])
        return {"first": first.decision, "second": second.decision, "by": second.by}

    return flow


@pytest.mark.covers("CORE-CTX-02", "D-28", "R-23", "R-24", "R-31")
async def test_questions_in_sequence_are_asked_once_each_when_the_run_parks_between_them(
    place: Place,
) -> None:
    log: list[str] = []
    flow = two_questions(log)
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    (first,) = result.holds
    assert first.prompt == "First?"
    # Looking at the run again asks nothing anew.
    result = await flow.resume(result.run_id, on=await place.hf())
    assert [h.id for h in result.holds] == [first.id]
    await answer(hf, result, "b")
    result = await flow.resume(result.run_id, on=await place.hf())
    (second,) = result.holds
    assert second.prompt == "Second?"
    assert second.id != first.id
    await answer(hf, result, "c", by="user:mara")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert result.state == {"first": "b", "second": "c", "by": "user:mara"}
    assert (await kinds(hf, result)).count("hold.opened") == 2


@pytest.mark.covers("D-28", "R-28", "R-27")
async def test_an_old_answer_never_satisfies_a_newer_question(place: Place) -> None:
    flow = two_questions([])
    hf = await place.hf()
    service = await hf.service()
    result = await flow.run(on=hf)
    (first,) = result.holds
    await service.answer(first.id, "a")
    result = await flow.resume(result.run_id, on=hf)
    # "a" would fit the second question too: it stays open, and the first is decided.
    assert result.status is RunStatus.pending_input
    with pytest.raises(HoldDecidedError):
        await service.answer(first.id, "b")
    # The same once more is what was said already.
    assert (await service.answer(first.id, "a")).id == first.id
    result = await flow.resume(result.run_id, on=hf)
    assert [h.prompt for h in result.holds] == ["Second?"]


@pytest.mark.covers("G-45", "D-28")
async def test_several_questions_at_once_are_answered_separately(place: Place) -> None:
    flow = Flow("gather")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        replies = await asyncio.gather(*(ctx.ask(f"{name}?", options=["yes", "no"]) for name in "abc"))
        return {"said": [r.decision for r in replies]}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert [h.prompt for h in result.holds] == ["a?", "b?", "c?"]
    assert len({h.id for h in result.holds}) == 3
    service = await hf.service()
    for i, said in ((1, "no"), (2, "yes")):
        await service.answer(result.holds[i].id, said)
        again = await flow.resume(result.run_id, on=hf)
        assert again.status is RunStatus.pending_input
    await service.answer(result.holds[0].id, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.state == {"said": ["yes", "no", "yes"]}


@pytest.mark.covers("R-26", "R-25", "D-29")
async def test_an_answer_is_not_lost_when_it_comes_before_the_run_has_parked(place: Place) -> None:
    flow = two_questions([])
    hf, other = await place.hf(), await place.hf()
    service = await other.service()

    answering: list[asyncio.Task[Any]] = []

    def answer_now() -> None:
        # Just when the first instance is about to park.
        hold = derived_id(RUN, "", "work", 1, "ask:0", 1)
        answering.append(asyncio.get_running_loop().create_task(service.answer(hold, "a")))

    with armed("before_park", hit=answer_now):
        result = await flow.run(on=hf, run_id=RUN)
    await asyncio.gather(*answering)
    result = await flow.resume(result.run_id, on=hf)
    assert [h.prompt for h in result.holds] == ["Second?"]


@pytest.mark.covers("R-26", "R-31", "D-29")
async def test_an_answer_is_used_when_the_worker_dies_right_after_it(place: Place) -> None:
    log: list[str] = []
    flow = two_questions(log)
    hf = await place.hf()
    result = await flow.run(on=hf)
    with armed("after_answer"), pytest.raises(Crash):
        await answer(hf, result, "b")
    with armed("after_claim"), pytest.raises(Crash):
        await flow.resume(result.run_id, on=hf)
    place.lapse()
    result = await flow.resume(result.run_id, on=await place.hf())
    assert [h.prompt for h in result.holds] == ["Second?"]


@pytest.mark.covers("R-28", "D-28")
async def test_a_question_keeps_its_id_when_the_worker_dies_after_asking(place: Place) -> None:
    flow = two_questions([])
    run = await place.crash(flow, {}, "before_park")
    hf = await place.hf()
    (before,) = await open_holds(hf, run)
    result = await flow.resume(run, on=hf)
    assert [h.id for h in result.holds] == [before.id]
    assert (await kinds(hf, run)).count("hold.opened") == 1


@pytest.mark.covers("D-28", "R-23", "R-21")
async def test_the_waiting_checkpoint_has_the_id_of_its_hold_and_is_written_before_the_wait(
    place: Place,
) -> None:
    flow = two_questions([])
    hf = await place.hf()
    result = await flow.run(on=hf)
    (opened,) = await told(hf, result, "hold.opened")
    (hold,) = result.holds
    assert opened.data["hold_id"] == hold.id
    created = [e for e in await told(hf, result, "checkpoint.created") if e.data["checkpoint_id"] == hold.id]
    assert [e.data["status"] for e in created] == ["pending_input"]
    (record,) = [r for r in await (await hf.open()).read(result.run_id) if r.kind == Kind.asked]
    assert record.seq == hold.seq


@pytest.mark.covers("CORE-HOLD-02")
async def test_one_of_two_answers_wins_when_they_come_at_once(place: Place) -> None:
    flow = two_questions([])
    hf, other = await place.hf(), await place.hf()
    result = await flow.run(on=hf)
    (hold,) = result.holds
    one, two = await hf.service(), await other.service()
    told_both = await asyncio.gather(
        one.answer(hold.id, "a", by="user:one"),
        two.answer(hold.id, "b", by="user:two"),
        return_exceptions=True,
    )
    losers = [t for t in told_both if isinstance(t, HoldDecidedError)]
    winners = [t for t in told_both if not isinstance(t, BaseException)]
    assert len(losers) == len(winners) == 1
    assert winners[0].resolved_by in str(losers[0])


def asking_and_emitting(log: list[str]) -> Flow:
    flow = Flow("both")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        ctx.emit("before")
        log.append("entered")
        first = await ctx.ask("First?", options=["a", "b"])
        ctx.emit("between")
        second = await ctx.ask("Second?", options=["a", "c"])
        return {"said": [first.decision, second.decision]}

    return flow


@pytest.mark.covers("R-62", "CORE-HOLD-03")
async def test_hot_and_parked_waits_tell_the_same_when_the_same_answers_come(place: Place) -> None:
    stories: list[list[tuple[str, str]]] = []
    results: list[Any] = []
    for settings, run in ((COLD, RUN), (HOT, RUN.replace("1", "2"))):
        log: list[str] = []
        flow = asking_and_emitting(log)
        hf = await place.hf(settings)
        driving = asyncio.create_task(flow.run(on=hf, run_id=run))
        for said in ("b", "c"):
            await until_asked(hf, run, driving)
            if settings is COLD:
                await driving
                await answer(hf, run, said)
                driving = asyncio.create_task(flow.resume(run, on=hf))
            else:
                await answer(hf, run, said)
        result = await driving
        results.append(result.state)
        stories.append([(e.type, e.node) for e in await told(hf, result)])
        assert len(log) == (3 if settings is COLD else 1)
    assert results[0] == results[1] == {"said": ["b", "c"]}
    resumed = ("run.resumed", "hold.reopened", "checkpoint.resumed", "hold.announced", "approval")
    assert [s for s in stories[0] if s[0] not in resumed] == stories[1]


async def until_asked(hf: Holdfast, run: str, driving: asyncio.Task[Any]) -> None:
    """Until the run has an open question; an error of the driver is not waited for."""
    store = await hf.open()
    async with asyncio.timeout(HANG):
        while not await store.holds(run=RunId(run), status=HoldStatus.pending):
            assert not driving.done(), driving.result()
            await asyncio.sleep(0.001)


def deadline(on_timeout: str | None, **options: Any) -> Flow:
    flow = Flow("deadline")
    options = ["yes", {"id": "no", "default": True}]
    flow.hold("gate", prompt="Ship?", options=options, timeout="2h", on_timeout=on_timeout)

    @flow.node(effect="pure")
    async def shipped(s: dict[str, Any]) -> dict[str, Any]:
        return {"end": s.get("decision")}

    @flow.node(effect="pure")
    async def late() -> dict[str, Any]:
        return {"end": "late"}

    flow.edge("gate", shipped, when="decision in ['yes', 'no']")
    if on_timeout != "branch:late":
        flow.edge("gate", late, when=lambda _s: False)
    return flow


async def expired(place: Place, flow: Flow) -> Any:
    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.pending_input
    place.clock.advance(hours=1, minutes=59)
    # A worker that looks too early changes nothing.
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.status is RunStatus.pending_input
    place.clock.advance(minutes=1)
    hf = await place.hf()
    result = await flow.resume(result.run_id, on=hf)
    (hold,) = await (await hf.open()).holds(run=result.run_id)
    return hf, result, hold


@pytest.mark.covers("EX-5", "RM-2")
async def test_the_default_option_is_taken_when_nobody_answers_in_time(place: Place) -> None:
    _hf, result, hold = await expired(place, deadline("default"))
    assert result.completed
    assert result.state["end"] == "no"
    text = result.state["decision_result"]
    assert (text["decision"], text["effective_decision"], text["auto_expired"]) == ("default", "no", True)
    assert (hold.status, hold.resolved_by) == (HoldStatus.resolved, "system:expiry")
    assert hold.resumed_at is not None


async def test_the_run_fails_when_nobody_answers_in_time_and_nothing_is_declared(place: Place) -> None:
    _, result, hold = await expired(place, deadline(None))
    assert result.failed
    assert result.error is not None
    assert result.error.code == "hold_expired"
    assert hold.status is HoldStatus.expired


async def test_the_run_is_cancelled_when_nobody_answers_in_time_and_the_flow_says_so(place: Place) -> None:
    _hf, result, hold = await expired(place, deadline("cancel"))
    assert result.status is RunStatus.cancelled
    assert (hold.status, hold.resolution) == (HoldStatus.cancelled, None)


async def test_a_branch_is_taken_when_nobody_answers_in_time_and_the_flow_says_so(place: Place) -> None:
    _, result, hold = await expired(place, deadline("branch:late"))
    assert result.completed
    assert result.state["end"] == "late"
    assert hold.status is HoldStatus.expired


@dataclass
class Shipment:
    decision: str = "nobody decided"
    choice: Literal["yes", "no"] | None = None
    end: str = ""


@pytest.mark.parametrize(("bind", "value"), [("decision", "nobody decided"), ("choice", None)])
@pytest.mark.covers("SAFE-TYPES-01")
async def test_the_state_keeps_its_types_when_nobody_answers_in_time(
    place: Place, bind: str, value: str | None
) -> None:
    flow = Flow("typed", state=Shipment)
    flow.hold(
        "gate", prompt="Ship?", options=["yes", "no"], timeout="2h", on_timeout="branch:late", bind=bind
    )

    @flow.node(effect="pure")
    async def late(s: Shipment) -> dict[str, Any]:
        return {"end": f"{s.decision}, {s.choice}"}

    _, result, hold = await expired(place, flow)
    assert hold.status is HoldStatus.expired
    assert result.expect().state == Shipment(end="nobody decided, None")
    assert getattr(result.state, bind) == value


@pytest.mark.covers("R-26", "RC-2", "EX-10")
async def test_an_answer_counts_when_the_deadline_has_passed_and_nobody_acted_on_it(place: Place) -> None:
    flow = deadline("branch:late")
    asked = await place.hf()
    result = await flow.run(on=asked)
    # It may still look around, where the store is slow: then it would act on the deadline itself.
    await asked.close()
    place.clock.advance(hours=2)
    service = await (await place.hf()).service()
    answered = await service.answer(result.holds[0].id, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert answered.status is HoldStatus.resolved
    assert result.state["end"] == "yes"


async def test_a_question_inside_a_node_raises_when_nobody_answers_in_time(place: Place) -> None:
    flow = Flow("inside")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        try:
            await ctx.ask("Well?", options=["yes"], timeout="2h")
        except HoldExpiredError:
            return {"end": "nobody"}
        return {"end": "somebody"}

    _, result, hold = await expired(place, flow)
    assert result.state == {"end": "nobody"}
    assert hold.status is HoldStatus.expired


async def test_a_node_fails_with_the_error_of_the_map_when_it_lets_an_expired_question_pass(
    place: Place,
) -> None:
    flow = Flow("inside")

    @flow.script
    async def work(ctx: Context) -> None:
        await ctx.ask("Well?", options=["yes"], timeout="2h")

    _, result, _ = await expired(place, flow)
    assert result.error is not None
    assert (result.error.code, result.error.type) == ("hold_expired", "HoldExpiredError")
    assert issubclass(HoldExpiredError, RunError)


async def test_a_question_inside_a_node_takes_its_default_when_nobody_answers_in_time(place: Place) -> None:
    flow = Flow("inside")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        choices = [{"id": "wait", "default": True}, "go"]
        reply = await ctx.ask("Well?", options=choices, timeout="2h", on_timeout="default")
        return {"end": reply.decision}

    _, result, _ = await expired(place, flow)
    assert result.completed
    assert result.state == {"end": "wait"}


async def test_an_expired_hold_wakes_the_run_when_it_waits_in_memory(place: Place) -> None:
    flow = deadline("default")
    hf = await place.hf(RunSettings(hot_hold=9999.0, poll=0.02, lease_ttl=99999.0))
    driving = asyncio.create_task(flow.run(on=hf))
    while not place.clock.sleeping:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    place.clock.advance(hours=2)
    result = await asyncio.wait_for(driving, HANG)
    assert result.state["end"] == "no"


@pytest.mark.covers("G-45", "Q1", "RS-PAUSE-7", "D-31")
async def test_a_pause_in_one_branch_keeps_what_its_siblings_finished(place: Place) -> None:
    flow = Flow("branches", effect="pure")
    log: list[str] = []

    @flow.node
    async def start() -> dict[str, Any]:
        return {}

    flow.hold("ask", prompt="Go?", options=["yes"])

    @flow.node(effect="external")
    async def side() -> dict[str, Any]:
        log.append("side")
        return {"side": 1}

    @flow.node
    async def join(s: dict[str, Any]) -> dict[str, Any]:
        return {"end": (s["decision"], s["side"])}

    flow.edge(start, "ask")
    flow.edge(start, side)
    flow.edge("ask", join)
    flow.edge(side, join)
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    assert log == ["side"]
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state["end"] == ("yes", 1)
    assert log == ["side"]


@pytest.mark.covers("E2")
async def test_resume_without_an_answer_does_not_pass_the_gate(place: Place) -> None:
    flow = deadline("default")
    hf = await place.hf()
    result = await flow.run(on=hf)
    result = await flow.resume(result.run_id, on=hf)
    assert result.status is RunStatus.pending_input
    assert "shipped" not in {e.node for e in await told(hf, result, "node.started")}


@pytest.mark.covers("G-38", "R-33", "RS-PAUSE-9")
async def test_a_question_is_asked_anew_when_its_run_failed_meanwhile_and_is_resumed(place: Place) -> None:
    flow = Flow("fails-beside", effect="read")
    mended = False

    @flow.node
    async def start() -> dict[str, Any]:
        return {}

    @flow.script
    async def asks(ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("Well?", options=["yes"])
        return {"said": reply.decision}

    @flow.node
    async def breaks() -> dict[str, Any]:
        for _ in range(5):
            await asyncio.sleep(0)
        if not mended:
            raise ValueError("broken")
        return {}

    flow.edge(start, asks)
    flow.edge(start, breaks)
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.failed
    assert not await open_holds(hf, result)
    mended = True
    result = await flow.resume(result.run_id, on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.state["said"] == "yes"
