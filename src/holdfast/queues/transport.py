"""How a queue is bound to a broker: the protocol of a transport (QU-20).

The message is a row of the store; a broker is only a way out and in. While a broker is away, rows stay
workable and the outbox retries. `holdfast.testing.conformance.transports` is the suite that every transport
passes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from holdfast.errors import SettingsError
from holdfast.types.queue_message import MessageRow


class TransportStatus(StrEnum):
    """What a broker knows of a message."""

    open = "open"
    gone = "gone"  # it was deleted, or never arrived
    completed = "completed"
    unknown = "unknown"  # this broker cannot tell


class Ack(StrEnum):
    """What becomes of an inbound message. `ack`: it is committed here. `retry`: deliver it again. `reject`:
    it can never be taken; a dead letter."""

    ack = "ack"
    retry = "retry"
    reject = "reject"


class QueueBinding(msgspec.Struct, frozen=True, kw_only=True):
    """One queue of a broker. `tenant`: whose messages the broker brings, whatever they say themselves.
    `actor`: who decides by its completions, if the operator says so."""

    scope: str
    queue: str
    tenant: str
    sends: bool
    receives: bool
    backend: str = "broker"
    actor: str | None = None


class TransportMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as a broker gets it. `payload`: JSON."""

    tenant: str
    scope: str
    queue: str
    id: str
    type: str
    correlation_id: str | None
    priority: str
    payload: bytes
    expires_at: int | None = None
    group_key: str | None = None


class TransportReport(msgspec.Struct, frozen=True, kw_only=True):
    """`completion`: the event of a completed message, as JSON, if the broker still has it."""

    status: TransportStatus
    completion: bytes | None = None


class UnboundPlace(msgspec.Struct, frozen=True):
    """Where a message was sent that no queue of the settings receives. `tenant`: that of the place."""

    name: str
    tenant: str


class PublishedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """An open message at a broker. `name`: how the broker calls its place. Without tenant and id: this
    release does not publish to such a place."""

    name: str
    tenant: str = ""
    scope: str = ""
    queue: str = ""
    id: str = ""


class BrokerContent(msgspec.Struct, frozen=True, kw_only=True):
    """What lies at a broker. `dead`: its dead letters; `newest`: place and reason of the newest one.
    `unfit`: what exists there with other settings than this release relies on."""

    published: list[PublishedMessage]
    dead: int = 0
    newest: str = ""
    unfit: list[str] = []


class InboundMessage(Protocol):
    """What a broker brought: a completion event, or a message to publish."""

    @property
    def deliveries(self) -> int:
        """How often the broker has brought it, this time included; 1 if it does not count."""
        ...

    @property
    def unbound(self) -> UnboundPlace | None:
        """None: it came by its binding. Else it cannot be taken, and the binding only stands in."""
        ...

    @property
    def binding(self) -> QueueBinding: ...

    @property
    def body(self) -> bytes: ...

    @property
    def completes(self) -> bool | None:
        """Whether it came by the way of completions (True) or of messages (False); None: this broker has one
        way for both."""
        ...

    async def settle(self, how: Ack, reason: str = "") -> None:
        """Once. A message that is never settled is delivered again. `reason`: why it is rejected, for those
        who look at the dead letters of the broker."""
        ...


class Transport(Protocol):
    """Every method raises TransportError if the broker is away or refuses; nothing has to be undone then."""

    async def publish(self, message: TransportMessage) -> None:
        """Returns after the broker has stored it. The same id again is a success and no second message."""
        ...

    async def withdraw(self, message: TransportMessage) -> None:
        """Delete it at the broker, so that no consumer starts on it. One that is gone is a success."""
        ...

    async def status(self, message: TransportMessage) -> TransportReport: ...

    def receive(self) -> AsyncIterator[InboundMessage]:
        """Messages of the bindings that receive, until the transport is closed."""
        ...

    async def close(self) -> None:
        """Ends `receive`. A second call changes nothing."""
        ...


@runtime_checkable
class ReachableTransport(Protocol):
    async def reach(self) -> None:
        """Connects, and creates nothing. Raises TransportError."""
        ...


@runtime_checkable
class ListingTransport(Protocol):
    """A transport that can say what lies at its broker. Both raise TransportError."""

    async def content(self) -> BrokerContent:
        """Creates and changes nothing."""
        ...

    async def discard(self, message: PublishedMessage) -> None:
        """Delete it at the broker. One that is gone is a success."""
        ...


OpenTransport = Callable[[Mapping[str, Any], Sequence[QueueBinding]], Transport]
"""Makes a transport of a backend's settings and the queues that are bound to it. Connects only when it is
used: a broker that is away must not stop a worker. Raises SettingsError."""

MODULES: Final[dict[str, str]] = {"nats": "holdfast.queues.nats"}
"""Kind of a backend -> the module that registers its transport, imported when it is first used."""

_registered: dict[str, OpenTransport] = {}


def register_transport(kind: str, opener: OpenTransport) -> None:
    """The last one counts: an application may bring transports of its own."""
    _registered[kind] = opener


def open_transport(name: str, settings: Mapping[str, Any], bindings: Sequence[QueueBinding]) -> Transport:
    """The transport of the backend `name`. Raises SettingsError."""
    kind = str(settings.get("kind", name))
    if kind not in _registered and kind in MODULES:
        try:
            import_module(MODULES[kind])
        except ModuleNotFoundError as error:
            raise SettingsError(
                f"the backend {name!r} needs the module {error.name}, which is not installed.",
                hint=f'pip install "holdfast-flow[{kind}]"',
            ) from error
    if kind not in _registered:
        known = ", ".join(sorted({*MODULES, *_registered}))
        raise SettingsError(f"the backend {name!r} has the unknown kind {kind!r}.", hint=f"Known: {known}.")
    return _registered[kind](settings, bindings)


def transport_message(row: MessageRow) -> TransportMessage:
    return TransportMessage(**{name: getattr(row, name) for name in TransportMessage.__struct_fields__})
