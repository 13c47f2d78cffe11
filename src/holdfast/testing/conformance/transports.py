"""The suite that every transport of queues passes.

Its author makes a fixture `broker`: a `BrokerKit` around one transport, and what the other side does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pytest

from holdfast.queues.transport import Ack, QueueBinding, TransportMessage, TransportStatus
from holdfast.types.ids import new_id
from holdfast.types.queue_message import COMPLETED_EVENT

if TYPE_CHECKING:
    from holdfast.queues.transport import InboundMessage, Transport

BINDING = QueueBinding(scope="support", queue="reviews", tenant="default", sends=True, receives=True)
PATIENCE = 20.0  # seconds


class BrokerKit(Protocol):
    """`transport` is bound to `BINDING`."""

    transport: Transport

    async def waiting(self) -> list[str]:
        """The ids of the messages that a foreign consumer could take now."""
        ...

    async def complete(self, message: TransportMessage, event: bytes) -> None:
        """A foreign consumer takes the message, and sends this event."""
        ...

    async def bring(self, body: bytes) -> None:
        """A foreign producer sends this to the queue."""
        ...


def message(**given: Any) -> TransportMessage:
    fields: dict[str, Any] = {
        "tenant": "default", "scope": "support", "queue": "reviews", "id": new_id(), "type": "task",
        "correlation_id": None, "priority": "normal", "payload": b'{"order":7}',
    }  # fmt: skip
    return TransportMessage(**{**fields, **given})


def completion(of: TransportMessage) -> bytes:
    data = {"message_id": of.id, "correlation_id": of.correlation_id, "result": {"decision": "approve"}}
    return msgspec.json.encode({"id": new_id(), "type": COMPLETED_EVENT, "tenant": of.tenant, "data": data})


async def next_of(transport: Transport) -> InboundMessage:
    """The next inbound message; others stay at the broker."""
    async with asyncio.timeout(PATIENCE):
        async for found in transport.receive():
            return found
    raise AssertionError("the transport was closed")


@pytest.mark.anyio
@pytest.mark.covers("QU-20")
class TransportSuite:
    async def test_message_is_published_once_for_its_id(self, broker: BrokerKit) -> None:
        first, second = message(), message(priority="critical", correlation_id="c", group_key="g")
        for each in (first, second, first, second):
            await broker.transport.publish(each)
        assert sorted(await broker.waiting()) == sorted([first.id, second.id])

    async def test_withdrawn_message_is_found_by_no_consumer(self, broker: BrokerKit) -> None:
        kept, gone = message(), message()
        for each in (kept, gone):
            await broker.transport.publish(each)
        for _ in range(2):
            await broker.transport.withdraw(gone)
        await broker.transport.withdraw(message())
        assert await broker.waiting() == [kept.id]
        await broker.transport.publish(gone)
        assert sorted(await broker.waiting()) == sorted([kept.id, gone.id])

    async def test_status_is_what_the_broker_knows_or_unknown(self, broker: BrokerKit) -> None:
        one = message(correlation_id=new_id())
        assert (await broker.transport.status(one)).status in (TransportStatus.gone, TransportStatus.unknown)
        await broker.transport.publish(one)
        assert (await broker.transport.status(one)).status in (TransportStatus.open, TransportStatus.unknown)
        event = completion(one)
        await broker.complete(one, event)
        known = await broker.transport.status(one)
        assert known.status in (TransportStatus.completed, TransportStatus.unknown)
        if known.completion is not None:
            assert msgspec.json.decode(known.completion) == msgspec.json.decode(event)

    async def test_completion_event_arrives_with_the_tenant_of_the_binding(self, broker: BrokerKit) -> None:
        one = message(correlation_id=new_id())
        await broker.transport.publish(one)
        event = completion(one)
        await broker.complete(one, event)
        found = await next_of(broker.transport)
        assert (found.binding, msgspec.json.decode(found.body)) == (BINDING, msgspec.json.decode(event))
        await found.settle(Ack.ack)

    @pytest.mark.covers("QU-21")
    async def test_message_that_is_not_acknowledged_is_delivered_again(self, broker: BrokerKit) -> None:
        await broker.bring(b'{"id": "m1", "payload": 1}')
        first = await next_of(broker.transport)
        await first.settle(Ack.retry)
        again = await next_of(broker.transport)
        assert again.body == first.body
        await again.settle(Ack.ack)

    @pytest.mark.covers("QU-21")
    async def test_rejected_message_is_not_delivered_again(self, broker: BrokerKit) -> None:
        await broker.bring(b"not json")
        await broker.bring(b'{"id": "m2", "payload": 2}')
        first = await next_of(broker.transport)
        await first.settle(Ack.reject)
        second = await next_of(broker.transport)
        assert {first.body, second.body} == {b"not json", b'{"id": "m2", "payload": 2}'}
        await second.settle(Ack.ack)

    async def test_closing_ends_receiving_and_may_be_repeated(self, broker: BrokerKit) -> None:
        async def drain() -> int:
            return len([each async for each in broker.transport.receive()])

        receiving = asyncio.create_task(drain())
        await asyncio.sleep(0.01)
        await broker.transport.close()
        await broker.transport.close()
        async with asyncio.timeout(PATIENCE):
            assert await receiving == 0
