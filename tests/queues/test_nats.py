"""Queues through NATS: the transport passes the suite, and a foreign client completes reviews."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import nats
import pytest
from nats.aio.client import Client
from nats.js.errors import APIError, NotFoundError

from holdfast.queues.nats import STORE_FAILED, NatsTransport
from holdfast.queues.transport import Ack, TransportMessage
from holdfast.testing.conformance.transports import BINDING, TransportSuite, message, next_of
from holdfast.types.ids import new_id
from tests.deadlines import HANG
from tests.services.nats import DEAD, DONE, INBOUND, NAMES, OPEN, NatsServer, server

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats")]


class Foreign:
    """A program that knows nothing of Holdfast but the subjects."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.js = client.jetstream()

    async def clear(self) -> None:
        """Purged, not deleted: a server that is busy fails to create a stream that it has just deleted, or
        finds old messages in it."""
        for stream in (OPEN, DONE, INBOUND, DEAD):
            try:
                await self.js.purge_stream(stream)
            except NotFoundError:
                continue

    async def subjects(self, stream: str, under: str = ">") -> list[str]:
        try:
            found = await self.js.stream_info(stream, subjects_filter=under)
        except NotFoundError:
            return []
        return sorted(found.state.subjects or {})

    async def seen(self) -> list[dict[str, object]]:
        """Every message that a consumer could take, read by a pull consumer of its own."""
        pull = await self.js.pull_subscribe("hf.q.>", stream=OPEN)
        found: list[dict[str, object]] = []
        for _ in await self.subjects(OPEN):
            (each,) = await pull.fetch(1)
            await each.ack()
            found.append(msgspec.json.decode(each.data))
        await pull.unsubscribe()
        return found


@pytest.fixture(scope="session")
def nats_server() -> NatsServer:
    return server()


@pytest.fixture
async def foreign(nats_server: NatsServer, anyio_backend: str) -> AsyncIterator[Foreign]:
    client = await nats.connect(nats_server.address)
    found = Foreign(client)
    await found.clear()
    yield found
    await client.close()


class NatsBroker:
    def __init__(self, foreign: Foreign, transport: NatsTransport) -> None:
        self.foreign = foreign
        self.transport = transport

    async def waiting(self) -> list[str]:
        return [str(each["id"]) for each in await self.foreign.seen()]

    async def complete(self, message: TransportMessage, event: bytes) -> None:
        await self.foreign.js.publish(NAMES.completion(message), event)

    async def bring(self, body: bytes) -> None:
        await self.transport.jetstream()
        await self.foreign.js.publish(f"hf.in.default.support.reviews.{new_id()}", body)


@pytest.fixture
async def broker(foreign: Foreign, nats_server: NatsServer) -> AsyncIterator[NatsBroker]:
    transport = NatsTransport({"servers": nats_server.address}, [BINDING])
    yield NatsBroker(foreign, transport)
    await transport.close()


@pytest.mark.covers("QU-22")
class TestNatsTransport(TransportSuite):
    pass


@pytest.mark.covers("QU-22")
async def test_repeat_is_refused_by_its_subject_after_the_duplicate_window(broker: NatsBroker) -> None:
    one = message(priority="high")
    await broker.transport.publish(one)
    assert await broker.foreign.subjects(OPEN) == [f"hf.q.default.support.reviews.high.{one.id}"]
    js = broker.foreign.js
    config = (await js.stream_info(OPEN)).config
    first = await js.get_last_msg(OPEN, NAMES.message(one))

    async def published_anew() -> None:
        while (await js.publish(str(first.subject), b"", headers=first.headers)).duplicate:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    # The shortest window that a server allows; it is over when the server has forgotten the id.
    await js.update_stream(config, duplicate_window=0.1)
    try:
        with pytest.raises(APIError) as refused:
            await asyncio.wait_for(published_anew(), HANG)
        assert refused.value.err_code == STORE_FAILED
        await broker.transport.publish(one)
        state = (await js.stream_info(OPEN)).state
        assert (state.messages, state.last_seq) == (1, first.seq)
    finally:
        await js.update_stream(config, duplicate_window=120)


async def test_raised_priority_leaves_no_second_message(broker: NatsBroker) -> None:
    one = message()
    await broker.transport.publish(one)
    raised = msgspec.structs.replace(one, priority="critical")
    await broker.transport.withdraw(raised)
    await broker.transport.publish(raised)
    assert await broker.foreign.subjects(OPEN) == [f"hf.q.default.support.reviews.critical.{one.id}"]


@pytest.mark.covers("QU-21")
async def test_rejected_completion_is_a_dead_letter_and_frees_its_subject(broker: NatsBroker) -> None:
    one = message(correlation_id="order.7 > *")
    await broker.transport.publish(one)
    await broker.complete(one, b"\xff")
    found = await next_of(broker.transport)
    await found.settle(Ack.reject)
    subject = "hf.done.default.order%2E7%20%3E%20%2A"
    assert NAMES.completion(one) == subject
    assert await broker.foreign.subjects(DEAD) == [f"hf.dead.{subject[3:]}"]
    await broker.complete(one, b"{}")
    again = await next_of(broker.transport)
    assert again.body == b"{}"
    await again.settle(Ack.ack)
