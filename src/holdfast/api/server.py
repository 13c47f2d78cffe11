"""The HTTP server, which can share its process with a worker."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.api import problems
from holdfast.api.problems import HttpError
from holdfast.errors import SettingsError
from holdfast.types.ids import new_id


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


class _HttpProtocol(HttpToolsProtocol):
    """Answers invalid HTTP, or headers that are too long, in our error format too."""

    def send_400_response(self, msg: str) -> None:
        error = HttpError(
            400,
            "The request cannot be parsed.",
            code="bad_request",
            hint="Its first line and headers may have at most 64 KB.",
        )
        answer = problems.problem_response(error, new_id())
        head = [b"HTTP/1.1 400 Bad Request\r\n", b"connection: close\r\n"]
        head += [b"%s: %s\r\n" % pair for pair in answer.raw_headers]
        self.transport.write(b"".join([*head, b"\r\n", bytes(answer.body)]))
        self.transport.close()


class HttpServer:
    """uvicorn in the caller's event loop: the caller handles signals, and is notified when it listens."""

    def __init__(self, app: ASGIApp, *, host: str, port: int, drain: float = 10.0) -> None:
        self.host = host
        self.port = port
        # Bound here and not by uvicorn: a port in use then
        # fails before the store is opened, and port 0 is known.
        self._socket = _bound_socket(host, port)
        self._server = _UvicornServer(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="on",
                timeout_graceful_shutdown=int(drain),
                server_header=False,
                ws_max_size=1 << 20,
                http=_HttpProtocol,
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
            f"Cannot listen on {host}:{port}: {error.strerror or error}.",
            hint="Give another --port or --host.",
        ) from error
    return found
