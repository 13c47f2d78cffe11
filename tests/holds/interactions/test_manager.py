"""Questions put from outside a flow: durable, named once, counted, cancelled, measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from holdfast import Flow, Holdfast
from holdfast.app.interactions import Interactions
from holdfast.errors import (
    HoldCancelledError,
    HoldExpiredError,
    HoldNotFoundError,
    InputError,
    RequestExistsError,
    TooManyPendingError,
)
from holdfast.holds.interactions.builders import approval, clarification, escalation, review
from holdfast.holds.queries.feedback import KEPT, Feedback, FeedbackLog
from holdfast.testing.clock import FakeClock
from holdfast.types.terms import operator
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(auto=True)


@pytest.fixture(params=["memory", "sqlite"])
def hf(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Holdfast:
    return Holdfast("memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'i.db'}", clock=clock)


async def decide(hf: Holdfast, hold: str, decision: str, **data: Any) -> None:
    await (await hf.holds()).resolve(operator("user:dana"), hold, decision=decision, response_data=data)


@pytest.mark.covers("G-46", "HOLD-LIFE-14")
async def test_a_request_outlives_a_caller_who_asked(tmp_path: Path, clock: FakeClock) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'i.db'}", clock=clock) as hf:
        asked = await Interactions(hf).request(approval("Pay?", agent="bot"), id="pay-1")
        assert await Interactions(hf).answer("pay-1") is None
    async with Holdfast(f"sqlite:{tmp_path / 'i.db'}", clock=clock) as hf:
        interactions = Interactions(hf)
        (row,) = await interactions.pending()
        assert (row.id, row.prompt, row.tags) == (asked.hold, "Pay?", ("request:pay-1",))
        await decide(hf, asked.hold, "approve", instructions="today")
        found: Any = await interactions.answer("pay-1")
        assert (found.approved, found.instructions, found.decided_by) == (True, "today", "user:dana")
        assert await interactions.answer("pay-1") == found
        assert await interactions.pending() == []


@pytest.mark.covers("G-46")
async def test_an_id_is_used_once(hf: Holdfast) -> None:
    interactions = Interactions(hf)
    first = await interactions.request(approval("Pay?"), id="pay-1")
    for question in (approval("Pay?"), review("x")):
        with pytest.raises(RequestExistsError):
            await interactions.request(question, id="pay-1")
    assert [row.id for row in await interactions.pending()] == [first.hold]
    # Of two at the same moment, one is asked.
    outcomes: list[str] = []

    async def ask() -> None:
        try:
            outcomes.append((await interactions.request(approval("Pay?"), id="pay-2")).hold)
        except RequestExistsError:
            outcomes.append("")

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(ask)
    assert len([each for each in outcomes if each]) == 1
    # Another tenant's ids are its own.
    await Interactions(hf, tenant="other").request(approval("Pay?"), id="pay-1")


@pytest.mark.covers("G-46")
async def test_no_more_are_open_than_may_be(hf: Holdfast) -> None:
    interactions = Interactions(hf, max_pending={"approval": 2})
    first = await interactions.request(approval("1"))
    await interactions.request(approval("2"))
    with pytest.raises(TooManyPendingError):
        await interactions.request(approval("3"))
    await interactions.request(clarification("4"))
    await decide(hf, first.hold, "approve")
    await interactions.request(approval("3"))


@pytest.mark.covers("G-46")
async def test_pending_lists_by_kind_and_those_of_flows_too(hf: Holdfast) -> None:
    interactions = Interactions(hf)
    await interactions.request(approval("1"))
    await interactions.request(clarification("2"))
    flow = Flow("own")
    flow.hold("asks", **approval("3").for_hold())
    flow.hold("plain", prompt="not one of the six", options=["a"])
    await flow.run({}, on=hf)
    assert [row.prompt for row in await interactions.pending()] == ["1", "2", "3"]
    assert [row.prompt for row in await interactions.pending("approval")] == ["1", "3"]
    assert await Interactions(hf, tenant="other").pending() == []


@pytest.mark.covers("G-46")
async def test_a_cancel_tells_a_caller_who_waits(hf: Holdfast) -> None:
    interactions = Interactions(hf)
    await interactions.request(approval("Pay?"), id="pay-1")
    heard: list[str] = []

    async def wait() -> None:
        try:
            await interactions.wait("pay-1", poll=0.01)
        except HoldCancelledError as error:
            heard.append(str(error))

    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            await interactions.cancel("pay-1", "the order is gone")
    assert heard == ["'pay-1' was withdrawn: the order is gone."]
    with pytest.raises(HoldNotFoundError):
        await interactions.cancel("never-asked")


@pytest.mark.covers("G-46")
async def test_an_answer_that_comes_is_waited_for(hf: Holdfast) -> None:
    interactions = Interactions(hf)
    asked = await interactions.request(clarification("Which?", options=["a", "b"]))
    got: list[Any] = []

    async def wait() -> None:
        got.append(await interactions.wait(asked.id, poll=0.01))

    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            await decide(hf, asked.hold, "b")
    assert got[0].option == "b"


@pytest.mark.covers("G-46")
async def test_a_request_that_nobody_answers_is_an_error_for_good(hf: Holdfast, clock: FakeClock) -> None:
    interactions = Interactions(hf)
    await interactions.request(approval("Pay?", timeout="1m"), id="pay-1")
    clock.advance(minutes=2)
    for _ in range(2):
        with pytest.raises(HoldExpiredError):
            await interactions.answer("pay-1")
    # Nobody is asked anew by looking.
    assert await interactions.pending() == []


@pytest.mark.covers("G-46", "HOLD-LIFE-14")
async def test_figures_count_only_what_was_decided(hf: Holdfast, clock: FakeClock) -> None:
    interactions = Interactions(hf)
    assert (await interactions.statistics()).approval_rate is None
    holds = [(await interactions.request(approval(str(n), timeout="1h"))).hold for n in range(5)]
    clock.advance(seconds=10)
    await decide(hf, holds[0], "approve")
    clock.advance(seconds=10)
    await decide(hf, holds[1], "approve")
    await decide(hf, holds[2], "reject")
    await (await hf.holds()).cancel(operator(), holds[3])
    refused = await interactions.request(approval("5", timeout="1h", auto_reject=True))
    clock.advance(hours=2)
    await (await hf.service()).runtime.sweeper.sweep()
    await interactions.request(escalation("low_confidence", "?"))
    await interactions.request(escalation("safety_concern", "?"))
    await interactions.request(escalation("low_confidence", "?"))
    found = await interactions.statistics()
    assert found.approval_rate == pytest.approx(2 / 3)
    assert found.response_ms == pytest.approx((10_000 + 20_000 + 20_000) / 3)
    assert found.total == {"approval": 6, "escalation": 3}
    assert found.decided == {"approval": 3}
    assert found.pending == {"escalation": 3}
    # One failed, one was refused by the system: nobody had answered either.
    assert (found.cancelled, found.timed_out) == (1, 2)
    assert found.escalations_by_reason == {"low_confidence": 2, "safety_concern": 1}
    assert (await interactions.statistics(since=(await hf.open()).now() + 1)).total == {}
    assert refused.hold


@pytest.mark.covers("G-46", "HOLD-LIFE-14")
async def test_feedback_is_found_by_agent_time_and_type(hf: Holdfast, clock: FakeClock) -> None:
    interactions = Interactions(hf)
    await interactions.give_feedback(Feedback(text="wrong", type="correction", agent="bot", importance=5))
    clock.advance(hours=1)
    noon = (await hf.open()).now()
    await interactions.give_feedback(Feedback(text="nice", type="praise", aspect="style", agent="bot"))
    clock.advance(seconds=1)
    await interactions.give_feedback(Feedback(text="slow", type="complaint", aspect="speed", agent="other"))
    assert [f.text for f in await interactions.feedback()] == ["slow", "nice", "wrong"]
    assert [f.text for f in await interactions.feedback(agent="bot")] == ["nice", "wrong"]
    assert [f.text for f in await interactions.feedback(since=noon)] == ["slow", "nice"]
    assert [f.text for f in await interactions.feedback(type="correction")] == ["wrong"]
    assert [f.text for f in await interactions.feedback(limit=1)] == ["slow"]
    assert await Interactions(hf, tenant="other").feedback() == []
    for wrong in ({"type": "rant"}, {"aspect": "smell"}, {"importance": 6}):
        with pytest.raises(InputError):
            await interactions.give_feedback(Feedback(text="x", **wrong))


@pytest.mark.covers("G-46")
async def test_the_oldest_feedback_gives_way(clock: FakeClock) -> None:
    async with Holdfast("memory:", clock=clock) as hf:
        book = FeedbackLog(await hf.open())
        for n in range(KEPT + 3):
            await book.give(Feedback(text=str(n), at=n + 1))
        found = await book.query(limit=2000)
        assert (len(found), found[0].text, found[-1].text) == (KEPT, str(KEPT + 2), "3")
