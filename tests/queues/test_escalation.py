"""The message of a review moves to another queue, and the broker hears of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.documents.connections import ConnectionSettings
from holdfast.queues.settings import QueueSettings, QueueSpec
from holdfast.queues.transport import Ack
from holdfast.testing.clock import FakeClock
from holdfast.types.queue_message import MessageState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator
from tests.documents.run import flow_text, start
from tests.documents.test_queue_nodes import resumed
from tests.queues.test_nats import Foreign, foreign, nats_server  # noqa: F401  # fixtures
from tests.queues.test_nats_story import NatsOffice, event
from tests.services.nats import OPEN, NatsServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats")]

HEAD = "config: {scaiqueue: {scope: shop}}"
TEXT = flow_text(
    """
    {id: start, type: start}
    {id: p, type: parallel}
    {id: ask, type: hitl_review, config: {queue: reviews, ENDS, sections: FORM}}
    {id: gate, type: checkpoint, config: {prompt: "Escalate?", options: [ok], ENDS}}
    {id: up, type: queue_escalation, config: {of: ask, queue: leads, priority: critical, note: "It waits."}}
    {id: j, type: join}
    {id: done, type: end}
    """.replace("ENDS", "timeout: 1d, on_timeout: cancel").replace(
        "FORM", "[{type: decision, options: [approve]}]"
    ),
    "start -> p -> ask -> j -> done\np -> gate -> up -> j",
    HEAD,
)
TAKES = flow_text(
    """
    {id: start, type: start}
    {id: got, type: queue_consume, config: {queue: leads}}
    {id: done, type: end}
    """,
    "start -> got -> done",
    HEAD,
)


@pytest.fixture
async def harness(
    tmp_path: Path,
    nats_server: NatsServer,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> AsyncIterator[NatsOffice]:
    clock = FakeClock()
    # Completions come by the queue that it is moved to.
    settings = QueueSettings(
        queues={
            "shop/reviews": QueueSpec(backend="nats", direction="out"),
            "shop/leads": QueueSpec(backend="nats"),
        },
        backends={"nats": {"servers": [nats_server.address]}},
    )
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
        yield NatsOffice(hf, await hf.queues(), await hf.open(), clock)


@pytest.mark.covers("QU-32", "QB-12")
async def test_review_that_is_escalated_moves_at_the_broker_and_is_completed_there(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    waiting = await start(harness.hf, TEXT, {}, settings=ConnectionSettings())
    service = await harness.hf.service()
    holds = {hold.node: hold for hold in await service.holds(waiting.run_id)}
    row = await harness.message(await harness.hold(holds["ask"].id))
    assert await foreign.subjects(OPEN) == [f"hf.q.default.shop.reviews.normal.{row.id}"]
    await harness.queues.claim_one(operator("user:dana@acme"), "shop", "reviews", row.id)

    await service.answer(holds["gate"].id, "ok")
    asked = await resumed(harness.hf, waiting)
    assert asked.state["up"] == {"escalated": True, "message_id": row.id}
    await harness.queues.work()
    (moved,) = await harness.queues.list("shop", "leads")
    assert (moved.id, moved.state, moved.priority) == (row.id, MessageState.ready, "critical")
    assert await foreign.subjects(OPEN) == [f"hf.q.default.shop.leads.critical.{row.id}"]
    (seen,) = await foreign.seen()
    assert msgspec.json.encode(seen["payload"]).count(b"It waits.") == 1

    # The question is still the hold's: who answers the moved message decides it.
    await foreign.js.publish(f"hf.done.default.{holds['ask'].id}", event(holds["ask"].id))
    assert await harness.delivered() is Ack.ack
    assert (await harness.hold(holds["ask"].id)).status is HoldStatus.resolved
    assert (await resumed(harness.hf, asked)).status == "completed"
    await harness.queues.work()
    assert await foreign.subjects(OPEN) == []


@pytest.mark.covers("QB-9")
async def test_review_of_a_cancelled_run_is_withdrawn_from_the_broker(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    waiting = await start(harness.hf, TEXT, {}, settings=ConnectionSettings())
    await harness.queues.work()
    assert len(await foreign.subjects(OPEN)) == 1
    await (await harness.hf.service()).cancel(waiting.run_id)
    await resumed(harness.hf, waiting)
    await harness.queues.work()
    assert await foreign.subjects(OPEN) == []


@pytest.mark.covers("QU-30")
async def test_message_that_a_run_took_is_withdrawn_from_the_broker(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    await harness.queues.publish("shop", "leads", 1, id="m1")
    await harness.queues.work()
    assert len(await foreign.subjects(OPEN)) == 1
    waiting = await start(harness.hf, TAKES, {}, settings=ConnectionSettings())
    for _ in range(2):
        await harness.queues.work()
    assert (await resumed(harness.hf, waiting)).state["got"]["id"] == "m1"
    assert await foreign.subjects(OPEN) == []


@pytest.mark.covers("QU-20", "QU-21")
async def test_message_that_ends_by_time_or_by_the_broker_is_withdrawn_from_it(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    now = harness.clock.now()
    await harness.queues.publish("shop", "leads", 1, id="late", expires_at=now + 60_000_000)
    await harness.queues.publish("shop", "leads", 1, id="done")
    await harness.queues.work()
    assert len(await foreign.subjects(OPEN)) == 2
    body = msgspec.json.decode(event("none"))
    body["data"]["message_id"] = "done"
    await foreign.js.publish("hf.done.default.none", msgspec.json.encode(body))
    assert await harness.delivered() is Ack.ack
    harness.clock.advance(seconds=61)
    for _ in range(2):
        await harness.queues.work()
    states = {row.id: row.state for row in await harness.queues.list("shop", "leads")}
    assert states == {"late": MessageState.expired, "done": MessageState.completed}
    assert await foreign.subjects(OPEN) == []
