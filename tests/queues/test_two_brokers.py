"""Queues of two brokers: each decides only what asks in its own queues, whatever a client of it names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import nats
import pytest

from holdfast import Flow, Holdfast
from holdfast.queues.nats import REASON, NatsTransport
from holdfast.queues.settings import QueueSettings, QueueSpec
from holdfast.queues.transport import Ack
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.transports import next_of
from holdfast.types.hold import HoldRow
from holdfast.types.ids import new_id
from holdfast.types.queue_message import MessageRow, MessageState
from holdfast.types.status import HoldStatus
from tests.queues.conftest import Harness
from tests.queues.test_nats import Foreign, foreign, nats_server  # noqa: F401  # fixtures
from tests.queues.test_nats_story import event, own_server  # noqa: F401
from tests.services.nats import DEAD, NatsServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats")]

MINE, THEIRS, LOCAL = "support/reviews", "vendor/reviews", "support/local"


class Brokers(Harness):
    """`support/reviews` is bound to the broker `inner`, `vendor/reviews` to `outer`."""

    clients: dict[str, Foreign]

    async def says(self, broker: str, subject: str, body: bytes) -> Ack:
        """A client of the broker completes something; what becomes of it."""
        transport = self.queues.relay._named(broker)  # pyright: ignore[reportPrivateUsage]
        assert isinstance(transport, NatsTransport)
        await transport.jetstream()
        await self.clients[broker].js.publish(f"hf.done.default.{subject}", body)
        found = await next_of(transport)
        how, reason = await self.queues.relay.taken(found)
        await found.settle(how, reason)
        return how

    async def completes(self, broker: str, hold: str, message_id: str | None = None) -> Ack:
        body: Any = msgspec.json.decode(event(hold))
        body["id"] = f"e-{broker}-{hold}"
        if message_id is not None:
            body["data"]["message_id"] = message_id
        return await self.says(broker, hold, msgspec.json.encode(body))

    async def published(self, queue: str, **asked: Any) -> HoldRow:
        hold = await self.asks(queue=queue, **asked)
        await self.message(hold)
        return await self.hold(hold.id)

    async def rejected(self, queue: str) -> list[MessageRow]:
        scope, _, name = queue.partition("/")
        return await self.queues.list(scope, name, states=(MessageState.dead,), type="rejected")

    async def status(self, hold: HoldRow) -> HoldStatus:
        return (await self.hold(hold.id)).status


@pytest.fixture(params=[None, "service:review-tool"], ids=["named", "actor"])
async def brokers(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    nats_server: NatsServer,  # noqa: F811
    own_server: NatsServer,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> AsyncIterator[Brokers]:
    servers = {"inner": nats_server, "outer": own_server}
    actor = {} if request.param is None else {"actor": request.param}
    settings = QueueSettings(
        queues={
            MINE: QueueSpec(backend="inner"),
            THEIRS: QueueSpec(backend="outer"),
            "vendor/out": QueueSpec(backend="inner", direction="out"),
        },
        backends={
            name: {"kind": "nats", "servers": [each.address], **actor} for name, each in servers.items()
        },
    )
    client = await nats.connect(own_server.address)
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=FakeClock(), queues=settings) as hf:
        found = Brokers(hf, await hf.queues(), await hf.open(), FakeClock())
        found.clients = {"inner": foreign, "outer": Foreign(client)}
        yield found
    await client.close()


@pytest.mark.covers("QU-21", "PLATFORM-BAD-02")
async def test_broker_decides_no_hold_of_the_queue_of_another_broker(brokers: Brokers) -> None:
    hold = await brokers.published(MINE)
    assert await brokers.completes("outer", hold.id, hold.message_id) is Ack.reject
    assert await brokers.completes("outer", hold.id) is Ack.reject
    assert await brokers.status(hold) is HoldStatus.pending
    # A dead letter of the broker that brought it, and shown in its queue, with the reason.
    dead = await brokers.clients["outer"].js.get_last_msg(DEAD, f"hf.dead.done.default.{hold.id}")
    assert "does not ask in a queue that receives from the broker" in (dead.headers or {})[REASON]
    assert {each.correlation_id for each in await brokers.rejected(THEIRS)} == {hold.id}
    assert await brokers.rejected(MINE) == []
    assert (await brokers.actions(hold.id)).count("unbound_completion") == 1
    # Its own broker decides it, and the message is withdrawn there.
    assert await brokers.completes("inner", hold.id, hold.message_id) is Ack.ack
    assert await brokers.status(hold) is HoldStatus.resolved


@pytest.mark.covers("QU-21")
async def test_completion_that_names_the_message_of_another_hold_is_rejected(brokers: Brokers) -> None:
    mine, theirs = await brokers.published(MINE), await brokers.published(THEIRS)
    plain = await brokers.queues.publish("support", "local", {"n": 1}, id="plain")
    for other in (mine.message_id, (await brokers.published(THEIRS)).message_id):
        assert await brokers.completes("outer", theirs.id, other) is Ack.reject
        assert "is not of hold" in ((await brokers.rejected(THEIRS))[0].error or "")
    # A message that is no review, in a queue that the broker does not know.
    assert await brokers.completes("outer", theirs.id, plain.id) is Ack.reject
    assert (await brokers.queues.get("support", "local", "plain")).state is MessageState.ready
    assert [await brokers.status(each) for each in (mine, theirs)] == [HoldStatus.pending] * 2
    # An id that is the broker's own is no claim on anything here (QB-13).
    assert await brokers.completes("outer", theirs.id, "order-7") is Ack.ack


@pytest.mark.covers("QU-21")
async def test_broker_completes_no_message_of_the_queue_of_another_broker(brokers: Brokers) -> None:
    for scope, queue in (("support", "reviews"), ("vendor", "out")):
        row = await brokers.queues.publish(scope, queue, {"n": 1}, id=f"{scope}-task")
        assert await brokers.completes("outer", row.id, row.id) is Ack.reject
        assert (await brokers.queues.get(scope, queue, row.id)).state is MessageState.ready
    assert await brokers.completes("inner", "support-task", "support-task") is Ack.ack
    # The queue is bound to this broker, which only gets its messages.
    assert await brokers.completes("inner", "vendor-task", "vendor-task") is Ack.reject


@pytest.mark.covers("QU-32", "QU-21")
async def test_moved_message_is_decided_by_the_broker_of_its_queue_alone(brokers: Brokers) -> None:
    hold, local = await brokers.published(MINE), await brokers.published(MINE)
    assert await brokers.queues.escalate("support", "reviews", hold.message_id or "", THEIRS)
    assert await brokers.queues.escalate("support", "reviews", local.message_id or "", LOCAL)
    for each in (hold, local):
        assert await brokers.completes("inner", each.id, each.message_id) is Ack.reject
        assert await brokers.status(each) is HoldStatus.pending
    assert await brokers.completes("outer", hold.id, hold.message_id) is Ack.ack
    assert await brokers.status(hold) is HoldStatus.resolved


@pytest.mark.covers("QU-25", "QU-21")
async def test_early_completion_takes_not_the_place_of_the_one_of_another_broker(brokers: Brokers) -> None:
    flow = Flow("early", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"], queue=MINE)
    run = new_id()
    async with Holdfast("memory:", clock=FakeClock()) as elsewhere:
        (foreseen,) = (await flow.run({}, on=elsewhere, run_id=run)).holds
    wrong = event(foreseen.id, "reject")
    assert await brokers.says("outer", foreseen.id, wrong) is Ack.ack  # kept: nobody knows the hold yet
    assert await brokers.says("inner", foreseen.id, event(foreseen.id)) is Ack.ack
    await flow.run({}, on=brokers.hf, run_id=run)
    await brokers.queues.work()
    after = await brokers.hold(foreseen.id)
    assert msgspec.json.decode(after.resolution or b"{}").get("decision") == "approve"
    assert "unbound_completion" in await brokers.actions(foreseen.id)


@pytest.mark.covers("QB-11", "QU-21")
async def test_reconciler_applies_the_completion_of_the_hold_s_own_broker_alone(brokers: Brokers) -> None:
    hold, _ = await brokers.published(MINE), await brokers.published(THEIRS)  # both brokers have streams
    await brokers.clients["outer"].js.publish(f"hf.done.default.{hold.id}", event(hold.id, "reject"))
    assert (await brokers.queues.reconcile()).applied == 0
    await brokers.clients["inner"].js.publish(f"hf.done.default.{hold.id}", event(hold.id))
    assert (await brokers.queues.reconcile()).applied == 1
    after = await brokers.hold(hold.id)
    assert msgspec.json.decode(after.resolution or b"")["decision"] == "approve"
