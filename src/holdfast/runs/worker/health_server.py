"""A small HTTP server of a worker, or of a server without one: whether it is alive and ready, and pages that
others add.

On the event loop of the process, on purpose: a loop that a handler blocks does not answer, and that is what a
probe must find out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from holdfast.errors import SettingsError, StoreError
from holdfast.telemetry import log

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from holdfast.runs.worker.worker import RunWorker
    from holdfast.store.protocols import Store

LOOPBACK: Final = "127.0.0.1"
PATIENCE: Final = 3.0
"""Seconds in which the store must answer for the worker to be ready."""
LONGEST: Final = 10.0
"""Seconds that a client has to send its request and read the answer; then its connection is closed.
Prometheus waits as long for a page."""
_JSON: Final = "application/json"


class HealthResponse(msgspec.Struct, frozen=True):
    status: int
    kind: str
    body: bytes


HealthPage = Callable[["RunWorker"], Awaitable[HealthResponse]]


class ReadinessSource(Protocol):
    """What a process without a worker is asked. `store`: None until it is open."""

    @property
    def store(self) -> Store | None: ...

    async def missing(self) -> list[str]:
        """The reasons why it is not ready; empty if it is."""
        ...


class Health:
    """`Health("9464")` listens on loopback; `Health("0.0.0.0:9464")` can be reached from elsewhere."""

    measures = False
    """Whether it has a page of metrics."""

    def __init__(self, address: str) -> None:
        """Raises SettingsError for an invalid address."""
        self.host, self.port = parse_address(address)
        self._server: asyncio.Server | None = None
        self._worker: RunWorker | None = None
        self._source: ReadinessSource | None = None
        self.longest = LONGEST
        self.wrong = "it is starting"  # why there is no worker yet
        self._logged: list[str] = []
        self.pages: dict[str, HealthPage] = {"/healthz": alive, "/readyz": ready}

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    async def open(self, worker: RunWorker) -> None:
        """Raises SettingsError if another process listens there. Does nothing if it is open."""
        self._worker = worker
        await self.listen()

    async def open_without_worker(self, source: ReadinessSource) -> None:
        """For a process that runs none: `source` says whether it is ready. Raises as `open` does."""
        self._source = source
        await self.listen()

    async def listen(self) -> None:
        """Even before there is a worker: so a probe can distinguish a process that waits for its store from
        one that hangs. Raises as `open` does."""
        if self._server is not None:
            return
        try:
            self._server = await asyncio.get_running_loop().create_server(
                _protocol(self._asgi, self.longest), self.host, self.port
            )
        except OSError as error:
            raise SettingsError(
                f"cannot listen on {self.host}:{self.port}: {error.strerror or error}.",
                hint="Give another port, or port 0 for any free one.",
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        log.info("health of this process: %s: %s", self.url, ", ".join(sorted(self.pages)))

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def _asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import Response

        answer = self._without_reasons(await self._answer(scope["method"], scope["path"]))
        # One answer for each connection, so that a closing server does not wait for idle ones.
        headers = {"Cache-Control": "no-store", "Connection": "close"}
        await Response(answer.body, answer.status, headers, answer.kind)(scope, receive, send)

    def _without_reasons(self, answer: HealthResponse) -> HealthResponse:
        """Reasons name hosts and workers: only this machine is told them, other machines read the status and
        the operator the log."""
        if answer.status != 503 or _is_loopback(self.host):
            return answer
        answered = msgspec.json.decode(answer.body, type=dict[str, Any])
        reasons = [*answered.pop("missing", ()), *answered.pop("wrong", ())]
        if reasons != self._logged:
            log.warning("a probe was answered 503: %s", "; ".join(reasons))
        self._logged = reasons
        return json_response(503, answered)

    async def _answer(self, method: str, path: str) -> HealthResponse:
        page = self.pages.get(path)
        if page is None:
            return json_response(404, {"pages": sorted(self.pages)})
        if method not in ("GET", "HEAD"):
            return json_response(405, {"methods": ["GET", "HEAD"]})
        if self._worker is None:
            return await self._without_worker(path)
        return await page(self._worker)

    async def _without_worker(self, path: str) -> HealthResponse:
        """There is none yet, or none at all."""
        if path == "/healthz":
            return json_response(200, {"alive": True})
        missing = [self.wrong] if self._source is None else await self._source.missing()
        return _not_ready(missing) if missing else json_response(200, {"ready": True})


async def alive(worker: RunWorker) -> HealthResponse:
    """The process is alive and its loop answers: otherwise this would not be sent."""
    if not worker.runtime.leases.is_heartbeating:
        return json_response(503, {"alive": False, "wrong": ["the heartbeat thread ended: leases expire"]})
    return json_response(200, {"alive": True})


async def ready(worker: RunWorker) -> HealthResponse:
    """Whether it claims runs: registered, not draining, and its store answers."""
    missing = [] if worker.runtime.leases.is_heartbeating else ["the heartbeat thread has ended"]
    if worker.is_stopping:
        missing.append("it is draining")
    unwritten = worker.runtime.recorder.trouble
    if unwritten is not None:
        since = monotonic() - unwritten.since
        missing.append(f"checkpoints cannot be written for {since:.0f} s ({unwritten.error.code})")
    trouble = await _trouble(worker)
    if trouble:
        missing.append(trouble)
    elif not worker.heartbeat.announced and not worker.is_stopping:
        missing.append(f"it is not known to the fleet as {worker.heartbeat.name!r} yet")
    return _not_ready(missing) if missing else json_response(200, {"ready": True})


def _not_ready(missing: list[str]) -> HealthResponse:
    return json_response(503, {"ready": False, "missing": missing})


async def _trouble(worker: RunWorker) -> str:
    """Reads the newest tables: a store without them has another schema."""
    try:
        async with asyncio.timeout(PATIENCE):
            await worker.store.workers()
    except TimeoutError:
        return f"the store did not answer within {PATIENCE:.0f} s"
    except StoreError as error:
        return f"the store does not answer: {error.message}"
    return ""


def json_response(status: int, value: object) -> HealthResponse:
    return HealthResponse(status, _JSON, msgspec.json.encode(value) + b"\n")


def _protocol(app: ASGIApp, longest: float) -> Callable[[], asyncio.Protocol]:
    """Answers one connection. uvicorn without its `Server`, which would handle the signals of the process and
    wake the loop ten times a second. Imported here: most workers have no such server."""
    from uvicorn import Config
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState

    class TimedProtocol(HttpToolsProtocol):
        """uvicorn limits only the pause between two requests: a client that sends one byte by byte could keep
        its connection, and a file descriptor of the worker, for as long as it likes."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._cut = self.loop.call_later(longest, transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            self._cut.cancel()
            super().connection_lost(exc)

    config = Config(
        app,
        interface="asgi3",
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
    )
    config.load()
    state = ServerState()
    return lambda: TimedProtocol(config, state, {})


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def parse_address(text: str) -> tuple[str, int]:
    """`9464`, `HOST:9464` or `[::1]:9464`."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else LOOPBACK
    if not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(
            f"{text!r} is not an address to listen on.",
            hint=f"Write a port (9464: on {LOOPBACK}), or HOST:PORT (0.0.0.0:9464: all interfaces).",
        )
    return host, int(port)
