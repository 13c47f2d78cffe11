"""Runs that wait for the next message of a queue, and messages that move to another queue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.errors import FlowInvalidError, InputError
from holdfast.queues.consume import received_id
from holdfast.queues.settings import QueueSettings, QueueSpec
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.queue_message import MessageState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, operator
from tests.queues.conftest import Office

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
async def test_run_waits_for_a_message_and_gets_it_once(office: Office) -> None:
    flow = taking()
    first, second = await flow.run({}, on=office.hf), await flow.run({}, on=office.hf)
    worker = Worker(flow, on=office.hf)
    await worker.run_until_idle()
    await office.queues.publish(*TASKS, {"n": 7}, id="t7")
    office.clock.advance(seconds=5)
    await worker.run_until_idle()
    results = [await flow.result(run.run_id, on=office.hf) for run in (first, second)]
    done = [each for each in results if each.completed]
    assert [each.state["done"] for each in done] == [7]
    row = await office.queues.get(*TASKS, "t7")
    assert row.state is MessageState.completed
    assert msgspec.json.decode(row.result or b"") == {"run": done[0].run_id}
    await office.queues.publish(*TASKS, {"n": 8}, id="t8")
    office.clock.advance(seconds=5)
    await worker.run_until_idle()
    assert sorted([(await flow.result(r.run_id, on=office.hf)).state["done"] for r in (first, second)]) == [
        7,
        8,
    ]
    await worker.close()


@pytest.mark.covers("QU-30")
async def test_no_inbox_shows_a_run_that_waits_for_a_message(office: Office) -> None:
    await taking().run({}, on=office.hf)
    people = office.queues.people
    for view in ("all", "unassigned", "mine"):
        assert await people.count(operator(), view=view) == 0
    assert [row.topic for row in await office.store.list_outbox()] == ["hold.queue"]


@pytest.mark.covers("QU-30")
async def test_hold_that_ended_otherwise_leaves_the_message_to_others(office: Office) -> None:
    result = await taking().run({}, on=office.hf)
    (hold,) = result.holds
    await office.queues.publish(*TASKS, {"n": 7}, id="t7")
    before = await office.hold(HoldId(hold.id))
    await office.queues.people.cancel(operator(), hold.id)
    # As a worker that had read the hold before it was cancelled.
    assert await office.queues.bridge.consumer.take_one(before)
    row = await office.queues.get(*TASKS, "t7")
    assert (row.state, row.attempts) == (MessageState.ready, 0)
    office.clock.advance(seconds=5)
    await office.queues.work()
    assert (await office.queues.get(*TASKS, "t7")).state is MessageState.ready


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
        async with asyncio.timeout(30):
            while not (found := await flow.result(run.run_id, on=hf)).completed:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    assert found.state["done"] in (1, 2)


@pytest.mark.covers("QU-30")
async def test_condition_is_compared_with_every_message_and_the_first_that_meets_it_is_taken(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.queues.consume.PAGE", 5)
    for number in range(23):
        await office.queues.publish(*TASKS, {"n": number}, id=f"t{number}")
        office.clock.advance(seconds=1)
    await office.queues.publish(*TASKS, {"n": 4}, id="late")

    def waits_for(number: int) -> Flow:
        flow = Flow(f"waits{number}", effect="pure")
        condition = {"match": "message.payload.n == wanted", "values": {"wanted": number}}
        flow.hold("take", prompt="", type="queue_wait", queue="support/tasks", context=condition)
        return flow

    async def got(flow: Flow) -> HoldRow:
        (hold,) = (await flow.run({}, on=office.hf)).holds
        await office.queues.work()
        return await office.hold(hold.id)

    for number, name in ((4, "t4"), (22, "t22"), (0, "t0")):
        assert received_id(await got(waits_for(number))) == name
    waiting = await got(waits_for(99))
    assert waiting.status is HoldStatus.pending
    # It came while the run waited, behind all the others and before them by its priority.
    await office.queues.publish(*TASKS, {"n": 99}, id="wanted", priority="low")
    await office.queues.publish(*TASKS, {"n": 99}, id="urgent", priority="high")
    await office.queues.work()
    assert received_id(await office.hold(waiting.id)) == "urgent"
    assert (await office.queues.get(*TASKS, "wanted")).state is MessageState.ready


async def test_escalated_message_moves_and_a_final_one_does_not(office: Office) -> None:
    queues = office.queues
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
async def test_flow_with_an_unlisted_queue_is_not_deployed_where_queues_are_listed(office: Office) -> None:
    flow = taking()
    flow.hold("ask", prompt="Go?", queue="support/reviews")
    await office.hf.deploy("one", flow)
    office.queues.settings = QueueSettings(strict=True, queues={"support/reviews": QueueSpec()})
    with pytest.raises(FlowInvalidError, match="'take' asks in the queue support/tasks"):
        await office.hf.deploy("two", flow)
