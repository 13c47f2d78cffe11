"""Messages between rows and brokers: what goes out after a commit, and what comes in before an
acknowledgement (QU-20, QU-21)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

import msgspec

from holdfast.errors import HoldfastError, InputError, TransportError
from holdfast.queues.completions import REFUSALS, read_event
from holdfast.queues.leftovers import leftovers
from holdfast.queues.settings import DATABASE, QueueSettings
from holdfast.queues.transport import (
    Ack,
    InboundMessage,
    ListingTransport,
    QueueBinding,
    Transport,
    TransportReport,
    TransportStatus,
    UnboundPlace,
    open_transport,
    transport_message,
)
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import Clock
from holdfast.types.outbox import QUEUE_OUT, OutboxMessage
from holdfast.types.queue_message import COMPLETED_EVENT, MessageRow

RECONNECT: Final = 5.0
"""Seconds until a lost broker is tried again."""
MOST_DELIVERIES: Final = 12
"""Of a message over which our own code fails; after that it is rejected. NATS delivers it so often within
about eight minutes. A store that is away does not count: then nothing is said about the message."""

Take = Callable[[QueueBinding, dict[str, Any]], Awaitable[None]]
Record = Callable[[QueueBinding, bytes, str], Awaitable[None]]


class QueueRelay:
    """`take`: commits what a broker brought. `record`: shows what could not be taken, and why."""

    def __init__(self, settings: QueueSettings, clock: Clock, take: Take, record: Record) -> None:
        self.settings = settings
        self.clock = clock
        self._take = take
        self._record = record
        self._transports: dict[str, Transport] = {}

    # ------------------------------------------------------------------ out
    def sends(self, scope: str, queue: str) -> bool:
        """Whether messages of this queue go out to a broker."""
        spec = self.settings.queues.get(f"{scope}/{queue}")
        return spec is not None and spec.backend != DATABASE and spec.sends

    def notice(self, row_id: str, scope: str, queue: str, what: str) -> list[OutboxMessage]:
        """What is written with a change of a message, so that the broker hears of it after the commit."""
        if not self.sends(scope, queue):
            return []
        payload = msgspec.json.encode({"id": row_id})
        return [OutboxMessage(QUEUE_OUT, f"{QUEUE_OUT}:{row_id}:{what}", payload)]

    def move_notice(self, row: MessageRow, scope: str, queue: str) -> list[OutboxMessage]:
        """The same for a message that moves to another queue: the broker of the old one hears of it, too."""
        if not self.sends(row.scope, row.queue) and not self.sends(scope, queue):
            return []
        payload = msgspec.json.encode({"id": row.id, "from": [row.scope, row.queue]})
        return [OutboxMessage(QUEUE_OUT, f"{QUEUE_OUT}:{row.id}:move:{row.updated_at}", payload)]

    async def moved(self, row: MessageRow, scope: str, queue: str) -> None:
        """Tell the brokers that the row came from that queue. Raises TransportError."""
        before = msgspec.structs.replace(row, scope=scope, queue=queue)
        if self.sends(scope, queue):
            await self._transport(before).withdraw(transport_message(before))
        await self.send(row, again=True)

    async def send(self, row: MessageRow, *, again: bool = False) -> None:
        """Tell the broker how the row is now. `again`: its content changed. Raises TransportError."""
        if not self.sends(row.scope, row.queue):
            return
        transport, message = self._transport(row), transport_message(row)
        if again or not row.is_open:
            await transport.withdraw(message)
        if row.is_open:
            await transport.publish(message)

    async def status(self, row: MessageRow) -> TransportReport:
        """Raises TransportError."""
        if not self.sends(row.scope, row.queue):
            return TransportReport(status=TransportStatus.unknown)
        return await self._transport(row).status(transport_message(row))

    def _transport(self, row: MessageRow) -> Transport:
        return self._named(self.settings.of(row.scope, row.queue).backend)

    async def discard_ended(self, store: Store) -> tuple[int, int]:
        """Delete at the brokers what is open there and has ended here. Returns how many were deleted, and
        how many this store does not know, which are left there. Raises TransportError."""
        discarded = unknown = 0
        for transport in self._sending():
            if not isinstance(transport, ListingTransport):
                continue
            found = await leftovers(store, (await transport.content()).published)
            for each in found.ended:
                await transport.discard(each)
            discarded, unknown = discarded + len(found.ended), unknown + len(found.unknown)
            if found.unknown:
                name = found.unknown[0].name
                log.warning("%d messages at a broker are not of this store, one is %s", unknown, name)
        return discarded, unknown

    def _sending(self) -> list[Transport]:
        specs = self.settings.queues.values()
        return [
            self._named(name)
            for name in sorted({each.backend for each in specs if each.sends and each.backend != DATABASE})
        ]

    def open(self) -> None:
        """Every transport that a queue is bound to, without connecting. Raises SettingsError."""
        for spec in self.settings.queues.values():
            if spec.backend != DATABASE:
                self._named(spec.backend)

    def _named(self, backend: str) -> Transport:
        found = self._transports.get(backend)
        if found is None:
            given = {
                name: value for name, value in self.settings.backends[backend].items() if name != "actor"
            }
            found = open_transport(backend, given, self._bindings(backend))
            self._transports[backend] = found
        return found

    def _bindings(self, backend: str) -> list[QueueBinding]:
        return [
            QueueBinding(
                scope=address.partition("/")[0],
                queue=address.partition("/")[2],
                tenant=spec.tenant,
                sends=spec.sends,
                receives=spec.receives,
                backend=backend,
                actor=self.settings.actor_of(backend),
            )
            for address, spec in self.settings.queues.items()
            if spec.backend == backend
        ]

    # ------------------------------------------------------------------ in
    async def serve(self) -> None:
        """Receive from every broker that a queue receives from, until cancelled."""
        backends = {
            spec.backend
            for spec in self.settings.queues.values()
            if spec.backend != DATABASE and spec.receives
        }
        if backends:
            await asyncio.gather(*(self._receive(backend) for backend in sorted(backends)))

    async def _receive(self, backend: str) -> None:
        while True:
            try:
                async for message in self._named(backend).receive():
                    await message.settle(*await self.taken(message))
            except TransportError as error:
                log.warning("the broker %s is away: %s", backend, error)
            await self.clock.sleep(RECONNECT)

    async def taken(self, message: InboundMessage) -> tuple[Ack, str]:
        """Commit it, then say what becomes of it at the broker, and why if it is rejected."""
        try:
            try:
                body = read_event(message.body)
                _require_way(message, body)
                if message.unbound is not None:
                    await self._refuse(message, message.unbound, body)
                await self._take(message.binding, body)
            except REFUSALS as error:
                log.warning("a message of %s cannot be taken: %s", message.binding.queue, error)
                await self._record(message.binding, message.body, str(error))
                return Ack.reject, str(error)
        except HoldfastError as error:
            # The store is away, or busy: the broker delivers it again (QB-10).
            log.warning("a message of %s is delivered again: %s", message.binding.queue, error)
            return Ack.retry, ""
        except Exception as error:
            # One message must not stop those behind it.
            log.exception("a message of %s failed", message.binding.queue)
            return await self._failed(message, error)
        return Ack.ack, ""

    async def _failed(self, message: InboundMessage, error: Exception) -> tuple[Ack, str]:
        """An error that nobody foresaw, perhaps over the form of another release: not delivered for ever."""
        if message.deliveries < MOST_DELIVERIES:
            return Ack.retry, ""
        reason = f"it failed {message.deliveries} times, the last time with {type(error).__name__}."
        try:
            await self._record(message.binding, message.body, reason)
        except Exception:
            log.exception("a message of %s cannot be shown among its dead ones", message.binding.queue)
            return Ack.retry, ""
        return Ack.reject, reason

    async def _refuse(self, message: InboundMessage, place: UnboundPlace, body: dict[str, Any]) -> NoReturn:
        if message.completes and place.tenant != message.binding.tenant:
            # It has no effect, and is audited as any completion for another tenant.
            await self._take(message.binding, {**body, "tenant": place.tenant})
        raise InputError(f"no queue of the settings receives from {place.name}.")

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.close()
        self._transports.clear()


def _require_way(message: InboundMessage, body: dict[str, Any]) -> None:
    """Who may only send messages must not decide, and the other way round."""
    if message.completes is None or message.completes is (body.get("type") == COMPLETED_EVENT):
        return
    way, other = ("completions", "messages") if message.completes else ("messages", "completions")
    raise InputError(f"received one of {other} on the channel for {way}, which does not deliver any.")
