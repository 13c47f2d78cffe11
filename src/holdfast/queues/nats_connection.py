"""The connection of the NATS transport: its settings, and the streams that messages are kept in (QU-22).

    [backends.nats]
    servers = ["nats://nats-1:4222", "nats://nats-2:4222"]
    user = "holdfast"
    password = "${NATS_PASSWORD}"      # or token, or credentials = "/run/secrets/nats.creds"
    tls_ca = "/etc/nats/ca.pem"        # with tls_cert and tls_key: a certificate of our own
    replicas = 3                       # of the streams that are created
    prefix = "hf"                      # of subjects and streams

No error and no log line contains an address or a credential.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.errors import NotFoundError

from holdfast.errors import SettingsError, TransportError
from holdfast.queues.nats_names import DEFAULT_PREFIX, PREFIX, NatsNames
from holdfast.telemetry import log
from holdfast.types.duration import DurationError, parse_duration

FAILURES: Final = (NatsError, OSError, TimeoutError)
_DAY: Final = 86_400.0


class NatsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`consumer`: the name of the durable consumers, which the workers of one store share. `prefix`: of
    subjects and streams; another store on the same servers needs another one. `ack_wait`: what is not
    acknowledged by then is delivered again."""

    servers: str | list[str]
    kind: str = "nats"
    user: str | None = None
    password: str | None = None
    token: str | None = None
    credentials: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    replicas: int = 1
    consumer: str = "holdfast"
    prefix: str = DEFAULT_PREFIX
    ack_wait: str = "30s"
    timeout: str = "5s"

    @property
    def addresses(self) -> list[str]:
        return [self.servers] if isinstance(self.servers, str) else self.servers


def read_settings(given: Mapping[str, Any]) -> NatsSettings:
    """Raises SettingsError."""
    try:
        found = msgspec.convert(dict(given), NatsSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(
            f"the settings of NATS do not fit: {error}.",
            hint="docs/how-to/queues-through-nats.md shows all fields.",
        ) from None
    for address in found.addresses or [""]:
        _require_address(address)
    for field in ("ack_wait", "timeout"):
        seconds_of(getattr(found, field), field)
    if found.replicas not in range(1, 6):
        raise SettingsError(f"the settings of NATS: replicas is {found.replicas}.", hint="Write 1, 3 or 5.")
    if not found.consumer.replace("-", "").replace("_", "").isalnum():
        raise SettingsError(
            "the settings of NATS: consumer is not a name.", hint="Use letters, digits, - and _."
        )
    if PREFIX.fullmatch(found.prefix) is None:
        raise SettingsError(
            f"the settings of NATS: prefix is {found.prefix!r}.",
            hint="Use 1 to 31 lower-case letters, digits and hyphens.",
        )
    if found.credentials is not None and find_spec("nkeys") is None:
        raise SettingsError(
            "a credentials file of NATS needs the module nkeys, which is not installed.",
            hint='pip install "holdfast-flow[nats]"',
        )
    return found


def _require_address(address: str) -> None:
    """The address itself is not shown: it may contain a password."""
    try:
        parts = urlsplit(address)
        fits = parts.scheme in ("nats", "tls") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise SettingsError(
            "the settings of NATS: an address in servers is not nats://HOST:PORT or tls://HOST:PORT.",
            hint='Write servers = ["nats://127.0.0.1:4222"].',
        )
    if "@" in address:
        raise SettingsError(
            "the settings of NATS: an address in servers contains credentials.",
            hint='Write user and password = "${NAME}", or token, or credentials.',
        )


def seconds_of(text: str, field: str) -> float:
    try:
        return parse_duration(text).total_seconds()
    except DurationError as error:
        raise SettingsError(f"the settings of NATS: {field}: {error}.") from None


def tls_of(settings: NatsSettings) -> ssl.SSLContext | None:
    """Raises SettingsError if a file cannot be read."""
    secure = any(address.startswith("tls://") for address in settings.addresses)
    if not secure and settings.tls_ca is None and settings.tls_cert is None:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca)
        if settings.tls_cert is not None:
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"the settings of NATS: tls_ca, tls_cert or tls_key cannot be read: {type(error).__name__}.",
            hint="Name files in PEM format that this process may read.",
        ) from None
    return context


def streams(names: NatsNames, replicas: int) -> list[StreamConfig]:
    """One message a subject: a repeat is refused for as long as the first one is there, also after the
    duplicate window. What foreign producers bring is deleted by its acknowledgement; a completion is kept
    for a week, so that a restored store finds it again."""
    once: dict[str, Any] = {
        "discard": DiscardPolicy.NEW,
        "max_msgs_per_subject": 1,
        "discard_new_per_subject": True,
        "num_replicas": replicas,
    }
    kept: dict[str, dict[str, Any]] = {
        names.open: {"retention": RetentionPolicy.LIMITS, **once},
        names.done: {"retention": RetentionPolicy.LIMITS, "max_age": 7 * _DAY, **once},
        names.inbound: {"retention": RetentionPolicy.WORK_QUEUE, **once},
        names.dead: {
            "retention": RetentionPolicy.LIMITS, "max_age": 30 * _DAY, "num_replicas": replicas
        },
    }  # fmt: skip
    return [
        StreamConfig(name=name, subjects=[subjects], **kept[name]) for name, subjects in names.streams.items()
    ]


_MUST: Final = ("retention", "discard", "max_msgs_per_subject", "discard_new_per_subject")


def unfit_fields(found: StreamConfig, wanted: StreamConfig) -> list[str]:
    """The settings of a stream that we rely on and that it does not have."""
    return [field for field in _MUST if getattr(found, field) != getattr(wanted, field)]


class NatsConnection:
    """Connects when it is first used, and again for as long as it is open. While the servers are away, each
    call fails at once instead of waiting: the outbox has other messages to send."""

    def __init__(self, settings: NatsSettings) -> None:
        self.settings = settings
        self.timeout = seconds_of(settings.timeout, "timeout")
        self._tls = tls_of(settings)
        self._client: Client | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._ready = False
        self._failed: list[str] = []
        self._closed = False

    async def jetstream(self) -> JetStreamContext:
        """Raises TransportError."""
        async with self._lock:
            found = JetStreamContext(await self._connected(), timeout=self.timeout)
            if not self._ready:
                await self._ensure(found)
                self._ready = True
            return found

    async def reach(self) -> JetStreamContext:
        """Connects, and creates nothing. Raises TransportError."""
        async with self._lock:
            return JetStreamContext(await self._connected(), timeout=self.timeout)

    async def _connected(self) -> Client:
        if self._closed:
            raise TransportError("the transport is closed.")
        if self._client is None:
            self._client = Client()
            self._connecting = asyncio.create_task(self._connect(self._client))
            await self._wait()
        if not self._client.is_connected:
            why = self._failed[-1] if self._failed else "no answer"
            raise TransportError(f"no NATS server can be reached: {why}.", hint="The connection is retried.")
        return self._client

    async def largest(self) -> int:
        """Bytes of the largest message that the server takes. Raises TransportError."""
        await self.jetstream()
        return self._client.max_payload if self._client is not None else 0

    async def _connect(self, client: Client) -> None:
        given = self.settings
        options: dict[str, Any] = {
            "user": given.user,
            "password": given.password,
            "token": given.token,
            "user_credentials": given.credentials,
            "tls": self._tls,
        }
        await client.connect(
            given.addresses,
            name="holdfast",
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_reconnected,
            connect_timeout=max(1, int(self.timeout)),
            reconnect_time_wait=1,
            max_reconnect_attempts=-1,
            ping_interval=20,
            **{name: value for name, value in options.items() if value is not None},
        )

    async def _wait(self) -> None:
        """Until connected, or until every server has failed once; connecting continues in the background."""
        assert self._connecting is not None
        loop = asyncio.get_running_loop()
        end = loop.time() + self.timeout
        while loop.time() < end and len(self._failed) < len(self.settings.addresses):
            await asyncio.wait({self._connecting}, timeout=0.02)
            if self._connecting.done():
                break
        if self._connecting.done() and (error := self._connecting.exception()) is not None:
            self._client = None
            raise TransportError(f"NATS cannot be used: {type(error).__name__}.") from None

    async def _ensure(self, js: JetStreamContext) -> None:
        """A stream that exists is used as it is, if it keeps what we rely on: an operator may have created
        it with limits and places of their own."""
        for wanted in streams(NatsNames(self.settings.prefix), self.settings.replicas):
            name = str(wanted.name)
            try:
                try:
                    found = (await js.stream_info(name)).config
                except NotFoundError:
                    made = await js.add_stream(wanted)  # pyright: ignore[reportUnknownMemberType]
                    found = made.config
            except FAILURES as error:
                raise TransportError(f"the stream {name} cannot be used: {reason_of(error)}.") from error
            if unfit := unfit_fields(found, wanted):
                raise TransportError(
                    f"the stream {name} exists with other settings: {', '.join(unfit)}.",
                    hint="Delete it, or create it as docs/how-to/queues-through-nats.md shows.",
                )

    async def _on_error(self, error: Exception) -> None:
        self._failed.append(reason_of(error))
        del self._failed[:-10]

    async def _on_disconnected(self) -> None:
        if not self._closed:
            log.warning("NATS is away; it is tried again")

    async def _on_reconnected(self) -> None:
        self._ready = False  # it may have lost its streams
        log.info("NATS is back")

    async def close(self) -> None:
        self._closed = True
        client, connecting = self._client, self._connecting
        self._client = self._connecting = None
        if connecting is not None and not connecting.done():
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
        if client is not None:
            with suppress(*FAILURES):
                await client.close()


def reason_of(error: BaseException) -> str:
    """What a server said, without an address."""
    described = getattr(error, "description", None)
    return str(described) if described else type(error).__name__
