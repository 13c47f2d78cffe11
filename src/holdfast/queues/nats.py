"""Queues through NATS JetStream (QU-22; docs/how-to/queues-through-nats.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, Header, RawStreamMsg
from nats.js.errors import APIError, NotFoundError

from holdfast.errors import TransportError
from holdfast.queues.nats_connection import (
    FAILURES,
    NatsConnection,
    read_settings,
    reason_of,
    seconds_of,
)
from holdfast.queues.nats_names import NatsNames
from holdfast.queues.transport import (
    Ack,
    InboundMessage,
    QueueBinding,
    TransportMessage,
    TransportReport,
    TransportStatus,
    register_transport,
)

STORE_FAILED: Final = 10077
"""What JetStream answers if a message is not stored; among others because its subject has one."""
_FETCH: Final = 2.0  # seconds of one pull; a reconnected server does not know the last one
_RETRY: Final = (0.2, 1.0, 5.0, 15.0, 60.0)  # seconds until the next delivery
_HEADER: Final = 1024  # bytes kept free for the header of a dead letter
_PULL = JetStreamContext.PullSubscription


class _Envelope(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A message as foreign consumers read it."""

    id: str
    type: str
    tenant: str
    scope: str
    queue: str
    priority: str
    payload: msgspec.Raw
    correlation_id: str | None = None
    expires_at: int | None = None
    group_key: str | None = None


def envelope(message: TransportMessage) -> bytes:
    fields: dict[str, Any] = {name: getattr(message, name) for name in _Envelope.__struct_fields__}
    fields["payload"] = msgspec.Raw(message.payload)
    return msgspec.json.encode(_Envelope(**fields))


class NatsInbound:
    def __init__(self, transport: NatsTransport, stream: str, binding: QueueBinding, given: Msg) -> None:
        self._transport = transport
        self._stream = stream
        self._given = given
        self.binding = binding

    @property
    def body(self) -> bytes:
        return self._given.data

    @property
    def completes(self) -> bool | None:
        return self._stream == self._transport.names.done

    async def settle(self, how: Ack) -> None:
        try:
            if how is Ack.ack:
                await self._given.ack()
            elif how is Ack.retry:
                times = self._given.metadata.num_delivered
                await self._given.nak(delay=_RETRY[min(times, len(_RETRY)) - 1])
            else:
                await self._bury()
        except FAILURES as error:
            raise TransportError(f"a message could not be acknowledged: {reason_of(error)}.") from error

    async def release(self) -> None:
        """It was fetched, and is not needed now."""
        try:
            await self._given.nak()
        except FAILURES:
            return  # it is delivered again after ack_wait

    async def _bury(self) -> None:
        """Copied, then deleted: a corrected completion may take its subject. A repeat after a crash between
        the two is the same dead letter."""
        js, sequence = await self._transport.jetstream(), self._given.metadata.sequence.stream
        key = f"{self._stream}:{sequence}:{int(self._given.metadata.timestamp.timestamp() * 1e6)}"
        names = self._transport.names
        subject = names.dead_letter(self._given.subject)
        # A server closes the connection over a message that is too large, and the header counts.
        body = self._given.data[: await self._transport.largest() - _HEADER]
        await js.publish(subject, body, stream=names.dead, headers={Header.MSG_ID: key})
        try:
            await js.delete_msg(self._stream, sequence)
        except APIError as error:
            if error.err_code != 10057 and not isinstance(error, NotFoundError):  # it is gone
                raise
        await self._given.term()


class NatsTransport:
    def __init__(self, settings: Mapping[str, Any], bindings: Sequence[QueueBinding]) -> None:
        self.settings = read_settings(settings)
        self.names = NatsNames(self.settings.prefix)
        self.bindings = list(bindings)
        self._connection = NatsConnection(self.settings)
        self._pulls: dict[tuple[str, str], _PULL] = {}
        self._closed = asyncio.Event()

    async def jetstream(self) -> JetStreamContext:
        return await self._connection.jetstream()

    async def largest(self) -> int:
        """Bytes of the largest message that the server takes."""
        return await self._connection.largest()

    # ------------------------------------------------------------------ out
    async def publish(self, message: TransportMessage) -> None:
        js, body, subject = await self.jetstream(), envelope(message), self.names.message(message)
        key = f"{message.tenant}:{message.id}:{sha256(body).hexdigest()[:32]}"
        try:
            known = await self._stored(js, message, body, key)
            if known is not None and await self._last(js, self.names.open, subject) is None:
                # The duplicate window remembers a message that was withdrawn since.
                await self._stored(js, message, body, f"{key}:{known}")
        except FAILURES as error:
            raise TransportError(f"NATS did not take the message: {reason_of(error)}.") from error

    async def _stored(
        self, js: JetStreamContext, message: TransportMessage, body: bytes, key: str
    ) -> int | None:
        """The sequence of the message that the server takes this one for, if any."""
        subject, stream = self.names.message(message), self.names.open
        try:
            done = await js.publish(subject, body, stream=stream, headers={Header.MSG_ID: key})
        except APIError as error:
            # A full disk has the same code.
            if error.err_code != STORE_FAILED or await self._last(js, stream, subject) is None:
                raise
            return None
        return done.seq if done.duplicate else None

    async def withdraw(self, message: TransportMessage) -> None:
        js = await self.jetstream()
        try:
            # With any priority: it may have been raised since.
            await js.purge_stream(self.names.open, subject=self.names.message(message, priority="*"))
        except FAILURES as error:
            raise TransportError(f"NATS did not delete the message: {reason_of(error)}.") from error

    async def status(self, message: TransportMessage) -> TransportReport:
        js = await self.jetstream()
        try:
            done = await self._last(js, self.names.done, self.names.completion(message))
            if done is not None:
                return TransportReport(status=TransportStatus.completed, completion=done.data or b"")
            found = await self._last(js, self.names.open, self.names.message(message, priority="*"))
        except FAILURES as error:
            raise TransportError(f"NATS did not answer: {reason_of(error)}.") from error
        return TransportReport(status=TransportStatus.gone if found is None else TransportStatus.open)

    async def _last(self, js: JetStreamContext, stream: str, subject: str) -> RawStreamMsg | None:
        try:
            return await js.get_last_msg(stream, subject)
        except NotFoundError:
            return None

    # ------------------------------------------------------------------ in
    async def receive(self) -> AsyncIterator[InboundMessage]:
        closing = asyncio.create_task(self._closed.wait())
        pulls: dict[asyncio.Task[NatsInbound | None], tuple[str, str, QueueBinding]] = {}
        waiting = list(self._sources())
        try:
            while not self._closed.is_set():
                for source in waiting:
                    pulls[asyncio.create_task(self._next(*source))] = source
                waiting.clear()
                await asyncio.wait({closing, *pulls}, return_when=asyncio.FIRST_COMPLETED)
                if self._closed.is_set():
                    break  # what the consumers were doing fails with the connection
                for task in [each for each in pulls if each.done()]:
                    found, source = task.result(), pulls.pop(task)
                    # Not fetched ahead: what the caller does not ask for stays at the server.
                    if found is not None:
                        yield found
                    waiting.append(source)
        finally:
            for task in (closing, *pulls):
                task.cancel()
            for left in await asyncio.gather(*pulls, return_exceptions=True):
                if isinstance(left, NatsInbound):
                    await left.release()

    def _sources(self) -> list[tuple[str, str, QueueBinding]]:
        """Stream, subject and binding of each consumer. Completions do not name their queue: those of a
        tenant come by the first of its queues that receives."""
        found: dict[str, tuple[str, str, QueueBinding]] = {}
        for each in self.bindings:
            if each.receives:
                done, inbound = self.names.completions_of(each.tenant), self.names.inbound_to(each)
                found.setdefault(done, (self.names.done, done, each))
                found[inbound] = (self.names.inbound, inbound, each)
        return list(found.values())

    async def _next(self, stream: str, subject: str, binding: QueueBinding) -> NatsInbound | None:
        """Raises TransportError. None: nothing came in time."""
        pull = self._pulls.get((stream, subject)) or await self._subscribed(stream, subject)
        try:
            (found,) = await pull.fetch(1, timeout=_FETCH)
        except TimeoutError:
            return None
        except FAILURES as error:
            self._pulls.pop((stream, subject), None)
            raise TransportError(f"NATS brings no messages: {reason_of(error)}.") from error
        return NatsInbound(self, stream, binding, found)

    async def _subscribed(self, stream: str, subject: str) -> _PULL:
        js, given = await self.jetstream(), self.settings
        name = f"{given.consumer}-{sha256(subject.encode()).hexdigest()[:16]}"
        wanted = ConsumerConfig(
            durable_name=name,
            description=subject,
            filter_subject=subject,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=seconds_of(given.ack_wait, "ack_wait"),
            max_deliver=-1,
        )
        try:
            await js.add_consumer(stream, wanted)  # pyright: ignore[reportUnknownMemberType]
            found = await js.pull_subscribe_bind(consumer=name, stream=stream)
        except FAILURES as error:
            raise TransportError(
                f"NATS makes no consumer: {reason_of(error)}.",
                hint="If another store uses the same server, give each a prefix of its own.",
            ) from error
        self._pulls[stream, subject] = found
        return found

    async def close(self) -> None:
        self._closed.set()
        await self._connection.close()


register_transport("nats", NatsTransport)
