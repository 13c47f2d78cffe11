"""The HTTP server, which can share its process with a worker."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address, ip_network

import uvicorn
from starlette.types import ASGIApp

from holdfast.api.http_protocol import ConnectionLimits, protocol_class
from holdfast.api.request_id import RequestIds
from holdfast.errors import SettingsError


class _UvicornServer(uvicorn.Server):
    """The caller handles signals."""

    ready: Callable[[], None] | None = None

    # uvicorn would install its own handlers; the worker in this process must drain on the same signal.
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.ready is not None and self.started:
            self.ready()


class HttpServer:
    """uvicorn in the caller's event loop: the caller handles signals, and is notified when it listens."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        port: int,
        drain: float = 10.0,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008
        proxies: Sequence[str] = (),
    ) -> None:
        """`proxies`: addresses or networks whose X-Forwarded-For and X-Forwarded-Proto are believed. Raises
        SettingsError."""
        trusted = [_network(each) for each in proxies]
        self.host = host
        self.port = port
        # Bound here and not by uvicorn: a port in use then
        # fails before the store is opened, and port 0 is known.
        self._socket = _bound_socket(host, port)
        self._server = _UvicornServer(
            uvicorn.Config(
                RequestIds(app),
                log_config=None,
                access_log=False,
                lifespan="on",
                timeout_graceful_shutdown=int(drain),
                server_header=False,
                ws_max_size=1 << 20,
                http=protocol_class(limits),
                timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]
                # Never uvicorn's defaults: they believe every process of this machine, and a variable.
                proxy_headers=bool(proxies),
                forwarded_allow_ips=trusted,
            )
        )
        self.port = self._socket.getsockname()[1]

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def serve(self, ready: Callable[[], None] | None = None) -> None:
        """Until `stop`."""
        self._server.ready = ready
        await self._server.serve(sockets=[self._socket])

    def stop(self, *, now: bool = False) -> None:
        """Running requests may finish; `now`: they are cancelled."""
        self._server.should_exit = True
        self._server.force_exit = self._server.force_exit or now


def _network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False)) if "/" in text else str(ip_address(text))
    except ValueError:
        raise SettingsError(
            f"{text!r} is not the address of a proxy.",
            hint="Give an IP address or a network, such as 10.0.0.7 or 10.0.0.0/8.",
        ) from None


def _bound_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With IPPROTO_TCP: only then the event loop sets TCP_NODELAY. Otherwise each answer whose head and body
    # are two writes is delayed by 40 ms.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error.strerror or error}.",
            hint="Give another --port or --host.",
        ) from error
    return found
