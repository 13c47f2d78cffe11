"""A broker in memory, for tests of what is bound to one: it keeps messages until they are withdrawn or
completed, and brings what is put into it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.errors import TransportError
from holdfast.queues.transport import (
    Ack,
    InboundMessage,
    QueueBinding,
    TransportMessage,
    TransportReport,
    TransportStatus,
    UnboundPlace,
)

Place = tuple[str, str]


class MemoryInbound:
    def __init__(self, broker: MemoryTransport, binding: QueueBinding, body: bytes) -> None:
        self._broker = broker
        self.binding = binding
        self.body = body
        self.completes: bool | None = None
        self.unbound: UnboundPlace | None = None
        self.deliveries = 1

    async def settle(self, how: Ack, reason: str = "") -> None:
        self._broker.settled.append(how)
        if how is Ack.retry:
            self.deliveries += 1
            self._broker.queue.put_nowait(self)


class MemoryTransport:
    """`down`: every call fails. `settled`: what became of inbound messages, in order."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, bindings: Sequence[QueueBinding] = ()
    ) -> None:
        self.bindings = bindings
        self.messages: dict[Place, TransportMessage] = {}
        self.completed: dict[Place, bytes] = {}
        self.queue: asyncio.Queue[MemoryInbound | None] = asyncio.Queue()
        self.settled: list[Ack] = []
        self.down = False

    async def publish(self, message: TransportMessage) -> None:
        self._require_up()
        self.messages.setdefault((message.tenant, message.id), message)

    async def withdraw(self, message: TransportMessage) -> None:
        self._require_up()
        self.messages.pop((message.tenant, message.id), None)

    async def status(self, message: TransportMessage) -> TransportReport:
        self._require_up()
        place = (message.tenant, message.id)
        if place in self.completed:
            return TransportReport(status=TransportStatus.completed, completion=self.completed[place])
        known = TransportStatus.open if place in self.messages else TransportStatus.gone
        return TransportReport(status=known)

    async def receive(self) -> AsyncIterator[InboundMessage]:
        self._require_up()
        while (found := await self.queue.get()) is not None:
            yield found

    async def close(self) -> None:
        self.queue.put_nowait(None)

    # What the other side does.

    def complete(self, message: TransportMessage, event: Mapping[str, Any], *, lost: bool = False) -> None:
        """A consumer completes it. `lost`: its event does not arrive."""
        place, body = (message.tenant, message.id), msgspec.json.encode(event)
        self.messages.pop(place, None)
        self.completed[place] = body
        if not lost:
            self.bring(body)

    def bring(self, body: bytes) -> None:
        self.queue.put_nowait(MemoryInbound(self, self.bindings[0], body))

    def _require_up(self) -> None:
        if self.down:
            raise TransportError("the broker is away.")
