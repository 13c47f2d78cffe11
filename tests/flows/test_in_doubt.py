from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast import AnswerInvalidError, Context, Flow, LeaseLostError, RunStatus
from holdfast.types.ids import RunId
from holdfast.types.record import Kind
from holdfast.types.status import HoldStatus
from tests.deadlines import HANG
from tests.flows.places import Place, answer, kinds, open_holds, told

pytestmark = pytest.mark.anyio


def paying(done: list[int], **options: Any) -> Flow:
    flow = Flow("pay")

    @flow.node(effect="external", **options)
    async def pay(ctx: Context) -> dict[str, Any]:
        done.append(ctx.attempt)
        return {"receipt": f"r{len(done)}"}

    @flow.node(effect="pure")
    async def thank(s: dict[str, Any]) -> dict[str, Any]:
        return {"thanked": s.get("receipt")}

    flow.edge(pay, thank)
    return flow


async def in_doubt(place: Place, flow: Flow) -> tuple[Any, str]:
    """A run whose worker died when the effect was done and not yet settled."""
    run = await place.crash(flow, {}, "after_handler")
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.status is RunStatus.pending_input
    return hf, run


@pytest.mark.covers("CORE-FLOW-33", "G-33")
async def test_the_run_goes_on_without_repeating_when_a_person_says_it_happened(place: Place) -> None:
    done: list[int] = []
    flow = paying(done)
    hf, run = await in_doubt(place, flow)
    await answer(hf, run, "happened", data={"update": {"receipt": "from the bank"}})
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert result.state["thanked"] == "from the bank"
    assert done == [1]


@pytest.mark.covers("CORE-FLOW-33", "D-18")
async def test_the_effect_runs_again_when_a_person_says_it_did_not_happen(place: Place) -> None:
    done: list[int] = []
    flow = paying(done)
    hf, run = await in_doubt(place, flow)
    await answer(hf, run, "not_happened")
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert done == [1, 2]
    assert result.state["thanked"] == "r2"
    (again,) = await told(hf, run, "node.restarted")
    assert again.data["reason"] == "in_doubt"


@pytest.mark.covers("CORE-FLOW-33")
async def test_the_run_fails_when_a_person_gives_the_effect_up(place: Place) -> None:
    done: list[int] = []
    flow = paying(done)
    hf, run = await in_doubt(place, flow)
    await answer(hf, run, "fail")
    result = await flow.resume(run, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "outcome_unknown"
    assert done == [1]


@pytest.mark.covers("CORE-FLOW-33")
async def test_the_doubt_shows_the_facts_of_the_intent(place: Place) -> None:
    done: list[int] = []
    flow = paying(done)
    hf, run = await in_doubt(place, flow)
    (hold,) = await open_holds(hf, run)
    facts = msgspec.json.decode(hold.context)
    assert facts["node"] == "pay"
    assert facts["effect"] == "external"
    assert (facts["visit"], facts["attempt"]) == (1, 1)
    record = (await (await hf.open()).read(RunId(run), first=facts["intent"], last=facts["intent"]))[0]
    assert record.node == "pay"
    # The same question stays open however often the run is looked at.
    await flow.resume(run, on=await place.hf())
    assert [h.id for h in await open_holds(hf, run)] == [hold.id]


@pytest.mark.parametrize(
    ("found", "calls", "receipt"), [(True, 1, None), ({"receipt": "kept"}, 1, "kept"), (None, 2, "r2")]
)
@pytest.mark.covers("CORE-FLOW-36")
async def test_a_probe_finds_out_when_the_worker_died_in_an_effect(
    place: Place, found: Any, calls: int, receipt: str | None
) -> None:
    done: list[int] = []
    asked: list[str] = []

    async def probe(s: Any, ctx: Context) -> Any:
        asked.append(ctx.idempotency_key)
        return found

    flow = paying(done, probe=probe)
    run = await place.crash(flow, {}, "after_handler")
    result = await flow.resume(run, on=await place.hf())
    assert result.completed
    assert len(asked) == 1
    assert len(done) == calls
    assert result.state.get("receipt") == receipt


@pytest.mark.covers("CORE-FLOW-36")
async def test_a_person_is_asked_when_not_even_the_probe_knows(place: Place) -> None:
    done: list[int] = []

    async def probe() -> Any:
        raise ConnectionError("the bank does not answer")

    flow = paying(done, probe=probe)
    run = await place.crash(flow, {}, "after_handler")
    result = await flow.resume(run, on=await place.hf())
    assert result.status is RunStatus.pending_input
    assert "the bank does not answer" in result.holds[0].prompt


def slow_payment(gate: asyncio.Event, started: asyncio.Event, done: list[str]) -> Flow:
    flow = Flow("slow")

    @flow.node(effect="external")
    async def pay() -> dict[str, Any]:
        started.set()
        await gate.wait()
        done.append("paid")
        return {"receipt": ("r", 1)}

    return flow


@pytest.mark.covers("D-17")
async def test_a_fenced_worker_tells_what_happened_before_anybody_asks(place: Place) -> None:
    gate, started, done = asyncio.Event(), asyncio.Event(), list[str]()
    flow = slow_payment(gate, started, done)
    first = await place.hf()
    run = RunId("22222222-2222-4333-8444-555555555555")
    driving = asyncio.create_task(flow.run(on=first, run_id=run))
    await started.wait()
    place.lapse()
    second = await place.hf()
    store = await second.open()
    # The reaper takes the run from the first worker, whose handler is still under way.
    await store.reclaim(limit=10, max_recoveries=5)
    gate.set()
    with pytest.raises(LeaseLostError):
        await driving
    result = await flow.resume(run, on=second)
    assert result.completed
    assert result.state["receipt"] == ("r", 1)
    assert done == ["paid"]


@pytest.mark.covers("D-17")
async def test_late_evidence_resolves_the_doubt_when_a_person_was_already_asked(place: Place) -> None:
    gate, started, done = asyncio.Event(), asyncio.Event(), list[str]()
    flow = slow_payment(gate, started, done)
    first = await place.hf()
    run = RunId("22222222-2222-4333-8444-555555555555")
    driving = asyncio.create_task(flow.run(on=first, run_id=run))
    await started.wait()
    place.lapse()
    second = await place.hf()
    result = await flow.resume(run, on=second)
    assert result.status is RunStatus.pending_input
    gate.set()
    with pytest.raises(LeaseLostError):
        await driving
    result = await flow.resume(run, on=second)
    assert result.completed
    assert done == ["paid"]
    assert not await open_holds(second, run)
    (hold,) = await (await second.open()).holds(run=run)
    assert hold.status is HoldStatus.cancelled


@pytest.mark.covers("D-17", "D-20")
async def test_late_evidence_about_a_sub_step_is_used_when_its_worker_was_fenced(place: Place) -> None:
    gate, started, done = asyncio.Event(), asyncio.Event(), list[str]()
    flow = Flow("slow-step")

    async def wire() -> str:
        started.set()
        await gate.wait()
        done.append("wired")
        return "ok"

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        return {"wire": await ctx.step("wire", wire, effect="external")}

    first = await place.hf()
    run = RunId("22222222-2222-4333-8444-555555555555")
    driving = asyncio.create_task(flow.run(on=first, run_id=run))
    await started.wait()
    place.lapse()
    second = await place.hf()
    result = await flow.resume(run, on=second)
    assert result.status is RunStatus.pending_input
    gate.set()
    with pytest.raises(LeaseLostError):
        await driving
    result = await flow.resume(run, on=second)
    assert result.completed
    assert result.state["wire"] == "ok"
    assert done == ["wired"]
    records = await (await second.open()).read(run)
    (step,) = [record for record in records if record.kind == Kind.substep]
    assert step.effect == "external", "the class of the sub-step, not that of the node around it"


def wiring(done: list[str], *, fails: Exception | None = None, **options: Any) -> Flow:
    flow = Flow("script")

    async def wire() -> str:
        done.append("wire")
        if fails is not None and done.count("wire") == 1:
            raise fails
        return f"w{done.count('wire')}"

    async def look() -> int:
        done.append("look")
        return 7

    @flow.script(**options)
    async def work(ctx: Context) -> dict[str, Any]:
        seen = await ctx.step("look", look, effect="read")
        sent = await ctx.step("wire", wire, effect="external")
        return {"seen": seen, "sent": sent}

    return flow


@pytest.mark.parametrize(
    ("said", "more", "sent", "wires"),
    [("happened", {"data": {"value": "told"}}, "told", 1), ("not_happened", {}, "w2", 2)],
)
@pytest.mark.covers("D-20", "D-21", "CORE-FLOW-33")
async def test_a_doubt_about_a_sub_step_is_answered_when_the_worker_died_in_it(
    place: Place, said: str, more: dict[str, Any], sent: str, wires: int
) -> None:
    done: list[str] = []
    flow = wiring(done)
    # The effect was done; the record of its result was never written.
    run = await place.crash(flow, {}, "after_substep", nth=2)
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.status is RunStatus.pending_input, result
    assert "'wire'" in result.holds[0].prompt
    await answer(hf, run, said, **more)
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert result.state == {"seen": 7, "sent": sent}
    assert (done.count("look"), done.count("wire")) == (1, wires)


@pytest.mark.covers("D-20", "D-15")
async def test_a_sub_step_is_in_doubt_when_it_raises_something_undeclared(place: Place) -> None:
    done: list[str] = []
    flow = wiring(done, fails=ConnectionError("reset"))
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, result, "fail")
    result = await flow.resume(result.run_id, on=hf)
    assert result.failed


@pytest.mark.parametrize("first", ["doubt", "failure"])
@pytest.mark.parametrize("inside", [False, True], ids=["node", "step"])
@pytest.mark.covers("D-15", "D-20", "G-36")
async def test_an_effect_in_doubt_is_asked_about_again_when_its_failed_run_is_resumed(
    place: Place, inside: bool, first: str
) -> None:
    flow, done = Flow("failing-beside", effect="read"), list[str]()
    began, lost, broken, works = (asyncio.Event() for _ in range(4))

    async def charge() -> dict[str, str]:
        done.append("charge")
        began.set()
        if first == "failure":
            await asyncio.wait_for(broken.wait(), HANG)
        lost.set()
        raise ConnectionError("reset")

    begin = flow.node(id="begin")(lambda: None)
    if inside:

        @flow.script(id="pay")
        async def pay(ctx: Context) -> Any:
            return await ctx.step("charge", charge, effect="external")
    else:
        flow.node(id="pay", effect="external")(charge)

    @flow.node(id="beside")
    async def beside() -> None:
        if not works.is_set():
            await asyncio.wait_for((lost if first == "doubt" else began).wait(), HANG)
            broken.set()
            raise ValueError("beside")

    flow.edge(begin, "pay")
    flow.edge(begin, beside)
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.failed
    works.set()
    result = await flow.resume(result.run_id, on=hf)
    assert [hold.type for hold in result.holds] == ["in_doubt"]
    assert done == ["charge"]
    data = {"value": {"receipt": "r1"}} if inside else {"update": {"receipt": "r1"}}
    await answer(hf, result, "happened", data=data)
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert (result.state["receipt"], done) == ("r1", ["charge"])


async def _loses_the_connection(done: list[str], asked: asyncio.Event) -> str:
    done.append("charge")
    await asyncio.wait_for(asked.wait(), HANG)
    raise ConnectionError("reset")


@pytest.mark.parametrize(
    ("said", "more", "charges"), [("happened", {"data": {"value": "r1"}}, 1), ("fail", {}, 1)]
)
@pytest.mark.covers("D-20", "D-15", "CORE-FLOW-33")
async def test_an_effect_in_doubt_is_not_repeated_when_the_question_of_another_branch_is_answered(
    place: Place, said: str, more: dict[str, Any], charges: int
) -> None:
    flow, done, asked = Flow("two-branches", effect="read"), list[str](), asyncio.Event()

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        async def approve() -> str:
            asked.set()
            first = await ctx.ask("Right?", options=["yes", "no"])
            return f"{first.decision} {(await ctx.ask('Sure?', options=['yes', 'no'])).decision}"

        charge = ctx.step("charge", _loses_the_connection, done, asked, effect="external")
        return {"found": await ctx.gather(approve(), charge)}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert [hold.type for hold in result.holds] == ["approval", "in_doubt"]
    assert b'"effect"' not in bytes(result.holds[1].context)  # of the node, which only reads
    service = await hf.service()
    await service.answer(result.holds[0].id, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert [hold.type for hold in result.holds] == ["in_doubt"]
    assert done == ["charge"]
    await service.answer(result.holds[0].id, said, **more)
    result = await flow.resume(result.run_id, on=hf)
    assert len(done) == charges
    assert result.failed if said == "fail" else [hold.prompt for hold in result.holds] == ["Sure?"]


@pytest.mark.covers("D-20", "D-15")
async def test_a_doubt_cannot_be_swallowed_when_the_handler_catches_everything(place: Place) -> None:
    flow = Flow("swallows")

    async def wire() -> str:
        raise ConnectionError("reset")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        try:
            await ctx.step("wire", wire, effect="external")
        except Exception:
            return {"all": "fine"}
        return {}

    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.pending_input


@pytest.mark.covers("D-20")
async def test_two_sub_steps_at_once_are_doubted_one_after_the_other_when_their_worker_died(
    place: Place,
) -> None:
    flow = Flow("two")
    done: list[str] = []

    async def wire(what: str) -> str:
        done.append(what)
        await asyncio.sleep(0)
        return what

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        a, b = await asyncio.gather(
            ctx.step("a", wire, "a", effect="external"), ctx.step("b", wire, "b", effect="external")
        )
        return {"a": a, "b": b}

    run = await place.crash(flow, {}, "after_intent", nth=2)
    done.clear()
    hf = await place.hf()
    assert (await flow.resume(run, on=hf)).status is RunStatus.pending_input
    await answer(hf, run, "happened", data={"value": "A"})
    assert (await flow.resume(run, on=hf)).status is RunStatus.pending_input
    await answer(hf, run, "not_happened")
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert result.state == {"a": "A", "b": "b"}
    assert done == ["b"]
    assert (await kinds(hf, run)).count("hold.opened") == 2


def paying_before_a_hold(done: list[int], hold: str) -> Flow:
    """The effect runs before the question, so that its result could answer it."""
    flow = Flow("pay-then-ask")
    asked = {"prompt": "Right?", "options": ["approve", "reject"], "bind": "said", "into": "form"}

    @flow.node(effect="external")
    async def pay(ctx: Context) -> dict[str, Any]:
        done.append(ctx.attempt)
        return {"receipt": "r1"}

    if hold == "in the flow":
        flow.edge(pay, flow.hold("check", **asked))
        return flow
    inner = Flow("inner", effect="pure")
    inner.hold("check", **asked)
    flow.edge(pay, flow.subflow("child", inner, outputs={"said": "state.said"}))
    return flow


@pytest.mark.covers("SAFE-CHAIN-04")
@pytest.mark.parametrize("field", ["said", "said_result", "form"])
@pytest.mark.parametrize("hold", ["in the flow", "in a sub-flow"])
async def test_who_says_that_it_happened_cannot_answer_a_hold_with_it(
    place: Place, hold: str, field: str
) -> None:
    flow = paying_before_a_hold([], hold)
    hf, run = await in_doubt(place, flow)
    update = {"receipt": "r1", field: "approve"}
    with pytest.raises(AnswerInvalidError, match=f"update.{field}"):
        await answer(hf, run, "happened", data={"update": update})
    assert len(await open_holds(hf, run)) == 1
    await answer(hf, run, "happened", data={"update": {"receipt": "r1"}})
    result = await flow.resume(run, on=hf)
    assert result.status is RunStatus.pending_input
    assert field not in result.state
