"""Holds that end without a decision, as their runs see it; none of them is ever an approval."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, HoldCancelledError, HoldExpiredError, Holdfast, Result, RunStatus, Worker
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator
from tests.flows.places import Place

pytestmark = pytest.mark.anyio


def gated(**manner: Any) -> Flow:
    flow = Flow("gated", effect="pure")
    flow.hold("gate", prompt="Pay?", options=["approve", "reject"], timeout="2h", **manner)

    @flow.node
    async def pay(s: dict[str, Any]) -> dict[str, Any]:
        return {"paid": s["decision"]}

    @flow.node
    async def late(s: dict[str, Any]) -> dict[str, Any]:
        return {"late": s["decision_result"]["expired"]}

    flow.edge("gate", pay, when="decision == 'approve'")
    if manner.get("on_timeout") != "branch:late":
        flow.edge("gate", late, when=lambda _s: False)
    return flow


def script(caught: list[str], **manner: Any) -> Flow:
    flow = Flow("script")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        try:
            reply = await ctx.ask("Pay?", options=["approve", "reject"], timeout="2h", **manner)
        except (HoldExpiredError, HoldCancelledError) as error:
            caught.append(type(error).__name__)
            return {"end": error.code}
        return {"end": reply.decision}

    return flow


async def after_two_hours(place: Place, flow: Flow) -> tuple[Result, HoldRow]:
    """Nobody answers, nobody waits; another process comes by when the time is over."""
    first = await place.hf()
    result = await flow.run(on=first)
    await first.close()
    place.clock.advance(hours=2)
    hf = await place.hf()
    result = await flow.resume(result.run_id, on=hf)
    return result, await the_hold(hf, result)


async def the_hold(hf: Holdfast, result: Result) -> HoldRow:
    (hold,) = await (await hf.open()).holds(run=result.run_id)
    return hold


@pytest.mark.covers("EX-8", "HOLD-TIME-05", "HOLD-BAD-03")
@pytest.mark.parametrize("on_timeout", [None, "fail"])
async def test_a_run_fails_and_pays_nothing_when_its_question_expires(
    place: Place, on_timeout: str | None
) -> None:
    result, hold = await after_two_hours(place, gated(on_timeout=on_timeout))
    assert (hold.status, hold.resolution, hold.resolved_by) == (HoldStatus.expired, None, None)
    assert hold.resumed_at is not None
    assert (result.status, result.failed_node) == (RunStatus.failed, "gate")
    assert result.error is not None
    assert result.error.code == "hold_expired"
    assert "paid" not in result.state


@pytest.mark.covers("EX-8")
async def test_an_expired_question_is_caught_when_the_node_has_a_way_for_failures(place: Place) -> None:
    flow = Flow("caught", effect="pure")
    flow.hold("gate", prompt="Pay?", options=["approve"], timeout="2h", on_failure="route:mend")

    @flow.node
    async def mend() -> dict[str, Any]:
        return {"mended": True}

    result, hold = await after_two_hours(place, flow)
    assert (hold.status, result.state["mended"]) == (HoldStatus.expired, True)


@pytest.mark.covers("EX-8")
async def test_an_expired_question_is_caught_in_the_handler_that_asked(place: Place) -> None:
    caught: list[str] = []
    result, hold = await after_two_hours(place, script(caught))
    assert (caught, result.state) == (["HoldExpiredError"], {"end": "hold_expired"})
    assert (hold.status, hold.resumed_at is not None) == (HoldStatus.expired, True)


@pytest.mark.covers("EX-8")
async def test_the_branch_of_an_expiry_is_taken_and_no_other(place: Place) -> None:
    result, hold = await after_two_hours(place, gated(on_timeout="branch:late"))
    assert (hold.status, hold.expiry_action) == (HoldStatus.expired, None)
    assert (result.state["late"], result.state["decision"]) == (True, None)
    assert "paid" not in result.state


@pytest.mark.covers("HOLD-TIME-05")
async def test_a_worker_that_was_away_acts_on_a_deadline_when_it_is_back(place: Place) -> None:
    flow = gated(on_timeout="branch:late")
    first = await place.hf()
    result = await flow.run(on=first)
    await first.close()
    place.clock.advance(days=30)
    hf = await place.hf()
    await Worker(flow, on=hf).run_until_idle()
    row = await (await hf.service()).get(result.run_id)
    assert row.status is RunStatus.completed
    assert (await the_hold(hf, result)).status is HoldStatus.expired


@pytest.mark.covers("CA-1")
async def test_a_run_ends_cancelled_when_its_question_is_withdrawn(place: Place) -> None:
    flow, hf = gated(), await place.hf()
    result = await flow.run(on=hf)
    await (await hf.holds()).cancel(operator("user:dana"), result.holds[0].id, reason="not needed")
    result = await flow.resume(result.run_id, on=hf)
    hold = await the_hold(hf, result)
    assert (result.status, hold.status) == (RunStatus.cancelled, HoldStatus.cancelled)
    assert (hold.resolution, hold.closed_by, hold.closed_reason) == (None, "user:dana", "not needed")
    assert "paid" not in result.state


@pytest.mark.covers("CA-1")
async def test_a_withdrawn_question_raises_when_its_handler_wants_to_know(place: Place) -> None:
    caught: list[str] = []
    flow, hf = script(caught, on_cancel="raise"), await place.hf()
    result = await flow.run(on=hf)
    await (await hf.holds()).cancel(operator(), result.holds[0].id, reason="asked the wrong team")
    result = await flow.resume(result.run_id, on=hf)
    assert (caught, result.state) == (["HoldCancelledError"], {"end": "hold_cancelled"})


@pytest.mark.covers("CA-1")
async def test_a_node_fails_when_its_question_is_withdrawn_and_the_flow_wants_to_know(place: Place) -> None:
    flow, hf = gated(on_cancel="raise"), await place.hf()
    result = await flow.run(on=hf)
    await (await hf.holds()).cancel(operator(), result.holds[0].id, reason="asked the wrong team")
    result = await flow.resume(result.run_id, on=hf)
    assert (result.status, result.failed_node) == (RunStatus.failed, "gate")
    assert result.error is not None
    assert result.error.code == "hold_cancelled"
    assert "asked the wrong team" in result.error.message


@pytest.mark.covers("CA-3")
async def test_open_questions_are_cancelled_with_the_run_that_asked_them(place: Place) -> None:
    flow = Flow("two", effect="pure")
    flow.hold("one", prompt="1?", options=["yes"])
    flow.hold("other", prompt="2?", options=["yes"], timeout="1h", bind="second")
    flow.start("one", "other")
    hf = await place.hf()
    result = await flow.run(on=hf)
    service = await hf.service()
    await service.answer(result.holds[0].id, "yes")
    await service.cancel(result.run_id, reason="over")
    result = await flow.resume(result.run_id, on=hf)
    rows = await (await hf.open()).holds(run=result.run_id)
    lines = sorted((row.node, row.status, row.closed_reason) for row in rows)
    assert lines == [
        ("one", HoldStatus.resolved, None),
        ("other", HoldStatus.cancelled, "the run was cancelled"),
    ]
    assert await (await hf.open()).next_due_hold() is None


@pytest.mark.covers("EX-8", "CA-1")
@pytest.mark.parametrize("end", ["expired", "withdrawn"])
async def test_a_question_of_the_engine_itself_has_an_end_too(place: Place, end: str) -> None:
    """Somebody gave a breakpoint a deadline, or withdrew it: the run does not hang on it."""
    flow, hf = gated(), await place.hf()
    result = await flow.run(on=hf, breaks=["gate"])
    (stop,) = result.holds
    assert stop.type == "debug_breakpoint"
    people = await hf.holds()
    if end == "withdrawn":
        await people.cancel(operator(), stop.id)
    else:
        await people.extend(operator(), stop.id, place.clock.now() + 60_000_000)
        place.clock.advance(minutes=1)
    result = await flow.resume(result.run_id, on=hf)
    assert result.status == {"expired": RunStatus.failed, "withdrawn": RunStatus.cancelled}[end]
