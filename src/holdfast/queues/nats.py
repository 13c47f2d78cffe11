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
from holdfast.queues.nats_content import content_of
from holdfast.queues.nats_names import NatsNames
from holdfast.queues.transport import (
    Ack,
    BrokerContent,
    InboundMessage,
    PublishedMessage,
    QueueBinding,
    TransportMessage,
    TransportReport,
    TransportStatus,
    UnboundPlace,
    register_transport,
)
from holdfast.types.text import one_line

STORE_FAILED: Final = 10077
"""What JetStream answers if a message is not stored; among others because its subject has one."""
_FETCH: Final = 2.0  # seconds of one pull; a reconnected server does not know the last one
_RETRY: Final = (0.2, 1.0, 5.0, 15.0, 60.0)  # seconds until the next delivery
_HEADER: Final = 1024  # bytes kept free for the header of a dead letter
REASON: Final = "Holdfast-Reason"
"""The header of a dead letter that says why it could not be taken."""
LOOK: Final = 30.0
"""Seconds between two looks for messages that no queue receives."""
_MOST_UNBOUND: Final = 100  # of one look
_PULL = JetStreamContext.PullSubscription
_Source = tuple[str, str, QueueBinding]


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


def _header_text(text: str) -> str:
    """On one line, in ASCII, and short enough for the place that is kept free."""
    return one_line(text, 500).encode("ascii", "replace").decode() or "-"


class NatsInbound:
    def __init__(self, transport: NatsTransport, stream: str, binding: QueueBinding, given: Msg) -> None:
        self._transport = transport
        self._stream = stream
        self._given = given
        self.binding = binding
        self.unbound: UnboundPlace | None = None

    @property
    def deliveries(self) -> int:
        return self._given.metadata.num_delivered

    @property
    def body(self) -> bytes:
        return self._given.data

    @property
    def completes(self) -> bool | None:
        return self._stream == self._transport.names.done

    async def settle(self, how: Ack, reason: str = "") -> None:
        try:
            if how is Ack.ack:
                await self._given.ack()
            elif how is Ack.retry:
                times = self._given.metadata.num_delivered
                await self._given.nak(delay=_RETRY[min(times, len(_RETRY)) - 1])
            else:
                given, at = self._given, self._given.metadata
                found = RawStreamMsg(given.subject, at.sequence.stream, given.data, time=at.timestamp)
                await self._transport.bury(self._stream, found, reason)
                await self._given.term()
        except FAILURES as error:
            raise TransportError(f"a message could not be acknowledged: {reason_of(error)}.") from error

    async def release(self) -> None:
        """It was fetched, and is not needed now."""
        try:
            await self._given.nak()
        except FAILURES:
            return  # it is delivered again after ack_wait


class UnboundInbound:
    """Sent to a subject that no queue receives from: no consumer would ever bring it."""

    def __init__(
        self, transport: NatsTransport, stream: str, binding: QueueBinding, given: RawStreamMsg
    ) -> None:
        self._transport, self._stream, self._given = transport, stream, given
        self.binding = binding
        self.body = given.data or b""
        self.completes: bool | None = stream == transport.names.done
        self.deliveries = 1
        subject = given.subject or ""
        self.unbound: UnboundPlace | None = UnboundPlace(subject, transport.names.tenant_in(subject))

    async def settle(self, how: Ack, reason: str = "") -> None:
        if how is not Ack.reject:
            return  # it is found again
        try:
            await self._transport.bury(self._stream, self._given, reason)
        except FAILURES as error:
            raise TransportError(f"a message could not be rejected: {reason_of(error)}.") from error


class NatsTransport:
    def __init__(self, settings: Mapping[str, Any], bindings: Sequence[QueueBinding]) -> None:
        self.settings = read_settings(settings)
        self.names = NatsNames(self.settings.prefix)
        self.bindings = list(bindings)
        self._connection = NatsConnection(self.settings)
        self._pulls: dict[tuple[str, str], _PULL] = {}
        self._unbound: list[UnboundInbound] = []
        self._seen: set[str] = set()
        self._closed = asyncio.Event()

    async def jetstream(self) -> JetStreamContext:
        return await self._connection.jetstream()

    async def reach(self) -> None:
        await self._connection.reach()

    async def content(self) -> BrokerContent:
        return await content_of(await self._connection.reach(), self.names, REASON)

    async def discard(self, message: PublishedMessage) -> None:
        await self._purge(message.name)

    async def largest(self) -> int:
        """Bytes of the largest message that the server takes."""
        return await self._connection.largest()

    async def bury(self, stream: str, given: RawStreamMsg, reason: str) -> None:
        """Copied, then deleted: a corrected completion may take its subject. A repeat after a crash between
        the two is the same dead letter."""
        js, sequence = await self.jetstream(), given.seq or 0
        key = f"{stream}:{sequence}:{int(given.time.timestamp() * 1e6) if given.time else 0}"
        subject = self.names.dead_letter(given.subject or "")
        # A server closes the connection over a message that is too large, and the header counts.
        body = (given.data or b"")[: await self.largest() - _HEADER]
        headers = {Header.MSG_ID: key, REASON: _header_text(reason)}
        await js.publish(subject, body, stream=self.names.dead, headers=headers)
        try:
            await js.delete_msg(stream, sequence)
        except APIError as error:
            if error.err_code != 10057 and not isinstance(error, NotFoundError):  # it is gone
                raise

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
        # With any priority: it may have been raised since.
        await self._purge(self.names.message(message, priority="*"))

    async def _purge(self, subject: str) -> None:
        js = await self.jetstream()
        try:
            await js.purge_stream(self.names.open, subject=subject)
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
        pulls: dict[asyncio.Task[NatsInbound | UnboundInbound | None], _Source | None] = {}
        waiting: list[_Source | None] = [*self._sources()]
        waiting += [None] if waiting else []
        try:
            while not self._closed.is_set():
                for source in waiting:
                    found = self._next_unbound() if source is None else self._next(*source)
                    pulls[asyncio.create_task(found)] = source
                waiting.clear()
                await asyncio.wait({closing, *pulls}, return_when=asyncio.FIRST_COMPLETED)
                if self._closed.is_set():
                    break  # what the consumers were doing fails with the connection
                for task in [each for each in pulls if each.done()]:
                    brought, source = task.result(), pulls.pop(task)
                    # Not fetched ahead: what the caller does not ask for stays at the server.
                    if brought is not None:
                        yield brought
                    waiting.append(source)
        finally:
            for task in (closing, *pulls):
                task.cancel()
            for left in await asyncio.gather(*pulls, return_exceptions=True):
                if isinstance(left, NatsInbound):
                    await left.release()

    async def _next_unbound(self) -> UnboundInbound | None:
        """What was there at two looks: the settings of a worker that starts may be newer than ours."""
        if not self._unbound:
            await asyncio.sleep(LOOK)
            try:
                self._unbound = await self._look()
            except FAILURES as error:
                raise TransportError(f"NATS lists no subjects: {reason_of(error)}.") from error
        return self._unbound.pop(0) if self._unbound else None

    async def _look(self) -> list[UnboundInbound]:
        js, sources = await self.jetstream(), self._sources()
        known = tuple(subject.removesuffix(">") for _, subject, _ in sources)
        seen: dict[str, str] = {}
        for stream in (self.names.done, self.names.inbound):
            state = (await js.stream_info(stream, subjects_filter=">")).state
            seen |= {each: stream for each in state.subjects or {} if not each.startswith(known)}
        again, self._seen = sorted(self._seen & seen.keys()), set(seen)
        found: list[UnboundInbound] = []
        for subject in again[:_MOST_UNBOUND]:
            given = await self._last(js, seen[subject], subject)
            if given is not None:
                tenant = self.names.tenant_in(subject)
                own = [each for _, _, each in sources if each.tenant == tenant]
                found.append(UnboundInbound(self, seen[subject], (own or [sources[0][2]])[0], given))
        return found

    def _sources(self) -> list[_Source]:
        """Stream, subject and binding of each consumer. Completions do not name their queue: those of a
        tenant come by the first of its queues that receives."""
        found: dict[str, _Source] = {}
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
            raise TransportError(f"NATS delivers no messages: {reason_of(error)}.") from error
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
                f"NATS does not create the consumer: {reason_of(error)}.",
                hint="If another store uses the same server, give each a prefix of its own.",
            ) from error
        self._pulls[stream, subject] = found
        return found

    async def close(self) -> None:
        self._closed.set()
        await self._connection.close()


register_transport("nats", NatsTransport)
