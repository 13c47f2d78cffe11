"""The transport in memory passes the suite; a queue that is bound to a broker sends and receives by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.errors import SettingsError, StoreBusyError
from holdfast.queues.settings import QueueSettings, QueueSpec, queue_settings, read_queue_settings
from holdfast.queues.transport import Ack, TransportMessage, open_transport, register_transport
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.transports import BINDING, TransportSuite, completion
from holdfast.testing.transports import MemoryInbound, MemoryTransport
from holdfast.types.outbox import OutboxState
from holdfast.types.queue_message import MessageFilter, MessageState
from holdfast.types.status import HoldStatus
from tests.deadlines import HANG
from tests.queues.conftest import DANA, PLACE, Harness, anybody

pytestmark = pytest.mark.anyio


class MemoryBroker:
    def __init__(self) -> None:
        self.transport = MemoryTransport(bindings=[BINDING])

    async def waiting(self) -> list[str]:
        return [each.id for each in self.transport.messages.values()]

    async def complete(self, message: TransportMessage, event: bytes) -> None:
        self.transport.complete(message, msgspec.json.decode(event))

    async def bring(self, body: bytes) -> None:
        self.transport.bring(body)


@pytest.fixture
def broker(anyio_backend: str) -> MemoryBroker:
    return MemoryBroker()


class TestMemoryTransport(TransportSuite):
    pass


class Bound(Harness):
    broker: MemoryTransport

    async def delivered(self) -> Ack:
        """What the broker brings next, and what becomes of it."""
        found = await self.broker.queue.get()
        assert isinstance(found, MemoryInbound)
        how, reason = await self.queues.relay.taken(found)
        await found.settle(how, reason)
        return how

    def sent(self) -> list[TransportMessage]:
        return list(self.broker.messages.values())


@pytest.fixture
async def bound(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Bound]:
    made: list[MemoryTransport] = []

    def opener(settings: Any, bindings: Any) -> MemoryTransport:
        made.append(MemoryTransport(settings, bindings))
        return made[-1]

    register_transport("memory", opener)
    clock = FakeClock()
    settings = QueueSettings(
        queues={"support/reviews": QueueSpec(backend="broker")}, backends={"broker": {"kind": "memory"}}
    )
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
        harness = Bound(hf, await hf.queues(), await hf.open(), clock)
        harness.queues.relay._named("broker")  # pyright: ignore[reportPrivateUsage]
        harness.broker = made[0]
        yield harness


@pytest.mark.covers("QU-20")
async def test_review_goes_out_to_the_broker_and_its_completion_decides_the_hold(bound: Bound) -> None:
    hold = await bound.asks()
    row = await bound.message(hold)
    (out,) = bound.sent()
    assert (out.id, out.correlation_id, out.payload) == (row.id, hold.id, row.payload)
    bound.broker.complete(out, msgspec.json.decode(completion(out)))
    assert await bound.delivered() is Ack.ack
    after = await bound.hold(hold.id)
    assert (after.status, after.resolved_by) == (HoldStatus.resolved, "system:queue")
    assert (await bound.message(hold)).state is MessageState.completed


@pytest.mark.covers("QU-20")
async def test_hold_that_is_decided_here_is_withdrawn_from_the_broker(bound: Bound) -> None:
    hold = await bound.asks()
    await bound.message(hold)
    await bound.queues.people.reassign(anybody(), hold.id, "user:eve@acme")
    await bound.queues.work()
    (out,) = bound.sent()
    assert msgspec.json.decode(out.payload)["assignee"] == "user:eve@acme"
    await bound.queues.people.resolve(anybody(), hold.id, "reject")
    await bound.queues.work()
    assert bound.sent() == []


@pytest.mark.covers("QU-20", "QB-2")
async def test_row_stays_workable_while_the_broker_is_away(bound: Bound) -> None:
    bound.broker.down = True
    hold = await bound.asks()
    row = await bound.claimed(hold)
    (waiting,) = await bound.store.list_outbox(topic="hold.queue")
    assert waiting.state is OutboxState.waiting
    await bound.queues.publish(*PLACE, {"n": 1}, id="m1")
    await bound.queues.work()
    assert bound.sent() == []
    bound.broker.down = False
    bound.clock.advance(minutes=4)
    await bound.queues.work()
    assert {each.id for each in bound.sent()} == {row.id, "m1"}
    await bound.queues.complete(DANA, *PLACE, row.id, row.claim_token, {"decision": "approve"})
    mine = await bound.queues.claim_one(DANA, *PLACE, "m1")
    await bound.queues.complete(DANA, *PLACE, "m1", mine.claim_token, {"ok": True})
    await bound.queues.work()
    assert bound.sent() == []


@pytest.mark.covers("QU-20", "QB-2")
async def test_withdrawal_reaches_the_broker_within_minutes_however_long_it_was_away(bound: Bound) -> None:
    hold = await bound.asks()
    await bound.message(hold)
    bound.broker.down = True
    await bound.queues.people.resolve(anybody(), hold.id, "reject")
    for _ in range(22):  # less than the retention of ended messages
        await bound.queues.work()
        bound.clock.advance(hours=6)
    await bound.queues.work()
    assert len(bound.sent()) == 1
    bound.broker.down = False
    bound.clock.advance(minutes=7)
    await bound.queues.work()
    assert bound.sent() == []


@pytest.mark.covers("QU-21")
async def test_inbound_message_is_committed_before_it_is_acknowledged(
    bound: Bound, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = msgspec.json.encode({"id": "in-1", "payload": {"order": 7}, "priority": "high"})
    bound.broker.bring(body)

    async def busy(*_given: Any, **_more: Any) -> Any:
        raise StoreBusyError("locked")

    with monkeypatch.context() as patch:
        patch.setattr(bound.store, "publish_message", busy)
        assert await bound.delivered() is Ack.retry
    assert await bound.delivered() is Ack.ack
    bound.broker.bring(body)
    assert await bound.delivered() is Ack.ack
    (row,) = await bound.store.list_messages(MessageFilter())
    assert (row.id, row.tenant, row.priority, row.state) == ("in-1", "default", "high", MessageState.ready)


@pytest.mark.covers("QU-21", "QB-7", "QB-8")
async def test_what_cannot_be_read_or_does_not_fit_is_rejected(bound: Bound) -> None:
    hold = await bound.asks()
    await bound.message(hold)
    (out,) = bound.sent()
    wrong = msgspec.json.decode(completion(out))
    wrong["data"]["result"]["decision"] = "perhaps"
    for body in (
        b"\xff",
        b"[1]",
        b'{"payload": 1}',
        b'{"id": "x y", "payload": 1}',
        msgspec.json.encode(wrong),
    ):
        bound.broker.bring(body)
        assert await bound.delivered() is Ack.reject, body
    foreign = {**msgspec.json.decode(completion(out)), "tenant": "acme"}
    bound.broker.bring(msgspec.json.encode(foreign))
    assert await bound.delivered() is Ack.reject
    assert "foreign_completion" in await bound.actions(None)
    assert (await bound.hold(hold.id)).status is HoldStatus.pending


@pytest.mark.covers("QU-24", "QB-11")
async def test_reconciler_asks_the_broker_and_repairs_what_was_missed(bound: Bound) -> None:
    lost, gone = await bound.asks(), await bound.asks()
    await bound.message(lost)
    by_hold = {each.correlation_id: each for each in bound.sent()}
    bound.broker.complete(by_hold[lost.id], msgspec.json.decode(completion(by_hold[lost.id])), lost=True)
    bound.broker.messages.clear()
    found = await bound.queues.reconcile()
    assert (found.holds, found.published, found.applied) == (2, 1, 1)
    assert (await bound.hold(lost.id)).status is HoldStatus.resolved
    assert [each.correlation_id for each in bound.sent()] == [gone.id]


@pytest.mark.covers("QU-20")
async def test_worker_receives_while_it_serves(bound: Bound) -> None:
    hold = await bound.asks()
    await bound.message(hold)
    (out,) = bound.sent()
    serving = asyncio.create_task(bound.queues.serve())
    bound.broker.complete(out, msgspec.json.decode(completion(out)))
    async with asyncio.timeout(HANG):
        while (await bound.hold(hold.id)).status is HoldStatus.pending:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert bound.broker.settled == [Ack.ack]


@pytest.mark.covers("QU-2", "QU-20")
async def test_settings_name_what_is_wrong_with_them(tmp_path: Path) -> None:
    file = tmp_path / "queues.toml"
    wrong = {
        "[queues.reviews]\n": "scope/queue",
        '[queues."support/reviews"]\nclaim_ttl = "soon"\n': "claim_ttl",
        '[queues."support/reviews"]\nmax_attempts = -1\n': "max_attempts",
        '[queues."support/reviews"]\nbackend = "nats"\n': "backends.nats",
        '[queues."support/reviews"]\ndirection = "up"\n': "direction",
        "strikt = true\n": "strikt",
        "strict = \n": "TOML",
    }
    for text, part in wrong.items():
        file.write_text(text)
        with pytest.raises(SettingsError, match=part):
            read_queue_settings(file)
    file.write_text('strict = true\n[queues."support/reviews"]\nclaim_ttl = "15m"\nmax_attempts = 3\n')
    found = queue_settings(str(file))
    assert found.of("support", "reviews").claim_micros == 900_000_000
    with pytest.raises(SettingsError, match="unknown kind"):
        open_transport("carrier-pigeon", {}, [])
