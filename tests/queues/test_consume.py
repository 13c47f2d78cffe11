"""Runs that wait for the next message of a queue, and messages that move to another queue."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.errors import FlowInvalidError, InputError
from holdfast.holds.actions.rate_limit import Pace
from holdfast.queues.consume import matches, received_data, received_id
from holdfast.queues.settings import QueueSettings, QueueSpec
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.queue_message import MessageClaim, MessageRow, MessageState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, operator
from tests.deadlines import HANG
from tests.queues.conftest import Harness

pytestmark = pytest.mark.anyio
TASKS = ("support", "tasks")


def taking() -> Flow:
    flow = Flow("taking", effect="pure")
    take = flow.hold("take", prompt="", type="queue_wait", queue="support/tasks")

    async def work(s: Any) -> dict[str, Any]:
        return {"done": s["decision_result"]["response_data"]["payload"]["n"]}

    flow.edge(take, flow.node()(work))
    return flow


@pytest.mark.covers("QU-30")
async def test_run_waits_for_a_message_and_gets_it_once(harness: Harness) -> None:
    flow = taking()
    first, second = await flow.run({}, on=harness.hf), await flow.run({}, on=harness.hf)
    worker = Worker(flow, on=harness.hf)
    await worker.run_until_idle()
    await harness.queues.publish(*TASKS, {"n": 7}, id="t7")
    harness.clock.advance(seconds=5)
    await worker.run_until_idle()
    results = [await flow.result(run.run_id, on=harness.hf) for run in (first, second)]
    done = [each for each in results if each.completed]
    assert [each.state["done"] for each in done] == [7]
    row = await harness.queues.get(*TASKS, "t7")
    assert row.state is MessageState.completed
    assert msgspec.json.decode(row.result or b"") == {"run": done[0].run_id}
    await harness.queues.publish(*TASKS, {"n": 8}, id="t8")
    harness.clock.advance(seconds=5)
    await worker.run_until_idle()
    assert sorted([(await flow.result(r.run_id, on=harness.hf)).state["done"] for r in (first, second)]) == [
        7,
        8,
    ]
    await worker.close()


@pytest.mark.covers("QU-30")
async def test_no_inbox_shows_a_run_that_waits_for_a_message(harness: Harness) -> None:
    await taking().run({}, on=harness.hf)
    people = harness.queues.people
    for view in ("all", "unassigned", "mine"):
        assert await people.count(operator(), view=view) == 0
    assert [row.topic for row in await harness.store.list_outbox()] == ["hold.queue"]


@pytest.mark.covers("QU-30")
async def test_hold_that_ended_otherwise_leaves_the_message_to_others(harness: Harness) -> None:
    result = await taking().run({}, on=harness.hf)
    (hold,) = result.holds
    await harness.queues.publish(*TASKS, {"n": 7}, id="t7")
    before = await harness.hold(HoldId(hold.id))
    await harness.queues.people.cancel(operator(), hold.id)
    # As a worker that had read the hold before it was cancelled.
    assert await harness.queues.bridge.consumer.take_one(before)
    row = await harness.queues.get(*TASKS, "t7")
    assert (row.state, row.attempts) == (MessageState.ready, 0)
    harness.clock.advance(seconds=5)
    await harness.queues.work()
    assert (await harness.queues.get(*TASKS, "t7")).state is MessageState.ready


@pytest.mark.covers("QU-30")
async def test_message_wakes_the_run_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worker looks when it starts; its next round is too late for this test.
    monkeypatch.setattr("holdfast.queues.maintenance._EVERY", 3600.0)
    flow = taking()
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}") as hf, Worker(flow, on=hf):
        run, queues = await flow.run({}, on=hf), await hf.queues()
        for number in (1, 2):
            await queues.publish(*TASKS, {"n": number}, id=f"t{number}")
        async with asyncio.timeout(HANG):
            while not (found := await flow.result(run.run_id, on=hf)).completed:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    assert found.state["done"] in (1, 2)


@pytest.mark.covers("QU-30")
async def test_condition_is_compared_with_every_message_and_the_first_that_meets_it_is_taken(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.queues.consume.PAGE", 5)
    for number in range(23):
        await harness.queues.publish(*TASKS, {"n": number}, id=f"t{number}")
        harness.clock.advance(seconds=1)
    await harness.queues.publish(*TASKS, {"n": 4}, id="late")

    def waits_for(number: int) -> Flow:
        flow = Flow(f"waits{number}", effect="pure")
        condition = {"match": "message.payload.n == wanted", "values": {"wanted": number}}
        flow.hold("take", prompt="", type="queue_wait", queue="support/tasks", context=condition)
        return flow

    async def got(flow: Flow) -> HoldRow:
        (hold,) = (await flow.run({}, on=harness.hf)).holds
        await harness.queues.work()
        return await harness.hold(hold.id)

    for number, name in ((4, "t4"), (22, "t22"), (0, "t0")):
        assert received_id(await got(waits_for(number))) == name
    waiting = await got(waits_for(99))
    assert waiting.status is HoldStatus.pending
    # It came while the run waited, behind all the others and before them by its priority.
    await harness.queues.publish(*TASKS, {"n": 99}, id="wanted", priority="low")
    await harness.queues.publish(*TASKS, {"n": 99}, id="urgent", priority="high")
    await harness.queues.work()
    assert received_id(await harness.hold(waiting.id)) == "urgent"
    assert (await harness.queues.get(*TASKS, "wanted")).state is MessageState.ready


def waits_if(name: str, match: str) -> Flow:
    flow = Flow(name, effect="pure")
    flow.hold("take", prompt="", type="queue_wait", queue="support/tasks", context={"match": match})
    return flow


@pytest.mark.covers("QU-30")
@pytest.mark.parametrize("content", [{"other": 1}, {"n": "many"}, {"n": None}, "text", []])
async def test_message_that_a_condition_cannot_be_compared_with_stops_nothing(
    harness: Harness, content: Any
) -> None:
    (first,) = (await waits_if("early", "message.payload.n > 5").run({}, on=harness.hf)).holds
    await harness.queues.work()
    await harness.queues.publish(*TASKS, content, id="bad")
    await harness.queues.work()
    (second,) = (await waits_if("late", "message.payload.n > 5").run({}, on=harness.hf)).holds
    await harness.queues.work()
    assert all(row.error is None for row in await harness.store.list_outbox())
    for name in ("m1", "m2"):
        await harness.queues.publish(*TASKS, {"n": 9}, id=name)
    await harness.queues.work()
    assert [received_id(await harness.hold(each.id)) for each in (first, second)] == ["m1", "m2"]


@pytest.mark.covers("QU-30")
async def test_queue_that_cannot_be_offered_does_not_stop_the_others(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (hold,) = (await waits_if("first", "message.payload.n > 5").run({}, on=harness.hf)).holds
    await harness.queues.work()
    other = Flow("other", effect="pure")
    other.hold("take", prompt="", type="queue_wait", queue="support/other")
    (fine,) = (await other.run({}, on=harness.hf)).holds
    await harness.queues.work()

    def broken(row: MessageRow, condition: dict[str, Any]) -> bool:
        if "match" in condition:
            raise RuntimeError("a form of another release")
        return matches(row, condition)

    monkeypatch.setattr("holdfast.queues.consume.matches", broken)
    await harness.queues.publish(*TASKS, {"n": 9}, id="m1")
    await harness.queues.publish("support", "other", {"n": 1}, id="m2")
    await harness.queues.work()
    assert "support/tasks could not be offered" in caplog.text
    assert received_id(await harness.hold(fine.id)) == "m2"
    assert (await harness.hold(hold.id)).status is HoldStatus.pending


@pytest.mark.covers("QU-30")
async def test_conditions_over_large_messages_are_compared_beside_the_event_loop(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []

    def noted(*given: Any) -> bool:
        threads.append(threading.current_thread() is threading.main_thread())
        return matches(*given)

    monkeypatch.setattr("holdfast.queues.consume.matches", noted)
    same = " and ".join(["message.payload.a == message.payload.b"] * 20)
    (hold,) = (await waits_if("large", same).run({}, on=harness.hf)).holds
    await harness.queues.work()
    await harness.queues.publish(*TASKS, {"a": [1] * 500, "b": [1] * 500}, id="m1")
    await harness.queues.work()
    assert received_id(await harness.hold(hold.id)) == "m1"
    assert threads
    assert not any(threads)


@pytest.mark.covers("QU-30")
async def test_run_waits_for_the_next_message_if_the_one_that_it_claimed_is_withdrawn(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hold,) = (await taking().run({}, on=harness.hf)).holds
    await harness.queues.publish(*TASKS, {"n": 1}, id="m1")
    claim = harness.store.claim_messages

    async def withdrawn(want: MessageClaim) -> list[MessageRow]:
        found = await claim(want)
        for each in found:
            await harness.queues.withdraw(*TASKS, each.id)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(harness.store, "claim_messages", withdrawn)
        await harness.queues.work()
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    await harness.queues.publish(*TASKS, {"n": 2}, id="m2")
    harness.clock.advance(seconds=60)
    await harness.queues.work()
    assert received_id(await harness.hold(hold.id)) == "m2"


@pytest.mark.covers("QU-30")
async def test_limits_for_people_do_not_limit_the_messages_that_runs_take() -> None:
    async with Holdfast("memory:", pace=Pace(actor=1, hold=1)) as hf:
        holds = [(await taking().run({}, on=hf)).holds[0] for _ in range(3)]
        queues = await hf.queues()
        for number in range(3):
            await queues.publish(*TASKS, {"n": number}, id=f"m{number}")
        await queues.work()
        store = await hf.open()
        found = [await store.hold(each.id) for each in holds]
        assert [row and received_id(row) for row in found] == ["m0", "m1", "m2"]


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else []


@pytest.mark.covers("QU-30")
@pytest.mark.parametrize("content", [nested(45), {"text": "x" * 250_000}])
async def test_run_takes_every_message_and_event_that_was_accepted(harness: Harness, content: Any) -> None:
    (hold,) = (await waits_if("any", "exists(message.payload)").run({}, on=harness.hf)).holds
    await harness.queues.publish(*TASKS, content, id="m1")
    await harness.queues.work()
    assert received_id(await harness.hold(hold.id)) == "m1"

    flow = Flow("events", effect="pure")

    @flow.script
    async def listen(s: Any, ctx: Any) -> dict[str, Any]:
        return {"got": await ctx.wait_for("big")}

    run = await flow.run({}, on=harness.hf)
    await harness.queues.send_event("big", content)
    assert (await flow.resume(run.run_id, on=harness.hf)).completed
    with pytest.raises(InputError, match="nested deeper than 50"):
        await harness.queues.publish(*TASKS, nested(60))


@pytest.mark.covers("QU-30")
async def test_event_that_no_run_can_take_blocks_neither_the_run_nor_the_events_behind_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(row: MessageRow) -> dict[str, Any]:
        if row.id == "bad":
            raise InputError("too large for a run")
        return received_data(row)

    monkeypatch.setattr("holdfast.queues.consume.received_data", fails)
    flow = Flow("events", effect="pure")

    @flow.script
    async def listen(s: Any, ctx: Any) -> dict[str, Any]:
        return {"got": await ctx.wait_for("paid")}

    (hold,) = (await flow.run({}, on=harness.hf)).holds
    for _ in range(12):  # more turns than a notice has attempts
        harness.clock.advance(seconds=60)
        await harness.queues.work()
    await harness.queues.send_event("paid", 1, id="bad")
    await harness.queues.send_event("paid", 2, id="good")
    for _ in range(12):
        harness.clock.advance(seconds=60)
        await harness.queues.work()
    assert received_id(await harness.hold(hold.id)) == "good"
    bad = await harness.store.queue_message("default", "bad")
    assert bad is not None
    assert (bad.state, bad.error) == (MessageState.dead, "too large for a run")


async def test_escalated_message_moves_and_a_final_one_does_not(harness: Harness) -> None:
    queues = harness.queues
    await queues.publish(*TASKS, 1, id="m1", priority="high")
    mine = await queues.claim_one(Actor(id="w"), *TASKS, "m1")
    assert await queues.escalate(*TASKS, "m1", "support/urgent", priority="low")
    moved = await queues.get("support", "urgent", "m1")
    assert (moved.priority, moved.state, moved.claim_token) == ("high", MessageState.ready, mine.claim_token)
    await queues.withdraw("support", "urgent", "m1")
    assert not await queues.escalate("support", "urgent", "m1", "support/tasks")
    await queues.publish(*TASKS, 1, id="m2")
    with pytest.raises(InputError):
        await queues.escalate(*TASKS, "m2", "urgent")


@pytest.mark.covers("QU-2")
async def test_flow_with_an_unlisted_queue_is_not_deployed_where_queues_are_listed(harness: Harness) -> None:
    flow = taking()
    flow.hold("ask", prompt="Go?", queue="support/reviews")
    await harness.hf.deploy("one", flow)
    harness.queues.settings = QueueSettings(strict=True, queues={"support/reviews": QueueSpec()})
    with pytest.raises(FlowInvalidError, match="'take' asks in the queue support/tasks"):
        await harness.hf.deploy("two", flow)
