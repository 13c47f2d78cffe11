"""HTTP/1.1 on one connection: uvicorn's protocol with limits of size and time.

uvicorn limits only the pause between two requests. A client that sends a request byte by byte, or does not
read its answer, would keep a connection and a file descriptor for as long as it likes.
"""

from __future__ import annotations

import asyncio
import re
import resource
import sys
from asyncio import TimerHandle
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec
from httptools import HttpParserCallbackError, HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from holdfast.api import problems
from holdfast.api.problems import HttpError
from holdfast.api.request_id import HEADER as REQUEST_ID
from holdfast.api.request_id import request_id
from holdfast.types.ids import new_id


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes are bytes, times are seconds."""

    head: int = 64 << 10
    """the first line and the headers of a request, and the trailers of its body"""
    head_seconds: float = 20.0
    """until the headers are complete, counted from the connection or the first byte"""
    body_seconds: float = 30.0
    """until the body is complete; each `body_rate` bytes add one second"""
    body_rate: int = 4096
    write_seconds: float = 60.0
    """in which a client must read some of an answer that waits for it"""
    idle_seconds: float = 5.0
    """between an answer and the next request"""
    connections: int = 10_000
    """open at once, in this process; at most four in five of its file descriptors"""

    def open_at_once(self) -> int:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # The others are for the store, files and the calls of handlers.
        return self.connections if soft == resource.RLIM_INFINITY else min(self.connections, soft * 4 // 5)


TOO_LONG: Final = "the first line and the headers of the request are too long."


def protocol_class(limits: ConnectionLimits) -> type[HttpToolsProtocol]:
    """uvicorn makes the instances, and passes them no settings of ours."""
    return type("_HttpProtocol", (LimitedProtocol,), {"limits": limits, "most": limits.open_at_once()})


class LimitedProtocol(HttpToolsProtocol):
    """Answers what is not HTTP, too long or too slow in our error format."""

    limits: ConnectionLimits = ConnectionLimits()
    most: int = ConnectionLimits.connections  # pyright: ignore[reportAssignmentType]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timers: dict[str, TimerHandle] = {}
        self._head = 0  # bytes of the head that were parsed
        self._received = 0  # bytes of a head that is not complete
        self._in_head = True
        self._heads = 0  # that were complete
        self._begun = False
        self._body = 0
        self._body_began = 0.0
        self._target_error: HttpError | None = None
        self._answering: RequestResponseCycle | None = None
        self._refusal: HttpError | None = None  # of the last request, until those before it are answered

    # ------------------------------------------------------------------ timers
    def _start(self, name: str, seconds: float, then: Callable[[], None]) -> None:
        self._stop(name)
        self._timers[name] = self.loop.call_later(seconds, then)

    def _stop(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    # ------------------------------------------------------------------ the connection
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(
                HttpError(
                    503, "too many connections are open.", code="not_ready", hint="Try again soon.",
                    retry_after=1,
                )
            )  # fmt: skip
            return
        self._start("head", self.limits.head_seconds, self._late_head)

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._stop(name)
        super().connection_lost(exc)
        # uvicorn tells it only the newest request, and a stream before it would go on for its whole life.
        if self._answering is not None:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self._refusal is not None:
            return
        # Empty lines before a request are no request: they must not extend the time either.
        if self._in_head and "head" not in self._timers:
            self._start("head", self.limits.head_seconds, self._late_head)
        was_in_head, heads = self._in_head, self._heads
        super().data_received(data)
        # Not if a whole request was in these bytes: then most of them may be its body.
        still = was_in_head and self._in_head and self._heads == heads
        if still and not self.transport.is_closing():
            # The parser reports a header when it is complete; until then only the bytes can be counted.
            self._received += len(data)
            if self._received > self.limits.head:
                self._head = self._received
                self.send_400_response(TOO_LONG)

    def handle_websocket_upgrade(self) -> None:
        if self._owes_answers():
            self._refuse(_early_upgrade())
            return
        for name in list(self._timers):
            self._stop(name)
        super().handle_websocket_upgrade()

    # ------------------------------------------------------------------ the parser
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head, self._in_head, self._begun = 0, True, True

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        # Trailers are dropped: they come after the checks of the headers.
        if self._in_head:
            super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > self.limits.head:
            raise ValueError(TOO_LONG)  # the parser stops, and `send_400_response` answers

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/"):
            self._read_target()
        self._stop("head")
        self._received = 0
        self._heads += 1
        self._in_head = False
        self._body, self._body_began = 0, self.loop.time()
        self._start("body", self.limits.body_seconds, self._check_body)
        super().on_headers_complete()

    def _read_target(self) -> None:
        """A whole address as target is used like its path, if it names the host that the Host header names
        (RFC 9112, 3.2.2). Otherwise what is checked would not be the host that the client asked for."""
        host = next((value for name, value in self.headers if name == b"host"), None)
        found = _ABSOLUTE.match(self.url)
        if found is None:
            self._target_error = _bad_target("must be a path, such as /v1/runs.")
        elif host is None or found["host"].lower() != host.strip().lower():
            self._target_error = _bad_target("names another host than the Host header.")
        else:
            rest = found["rest"] or b"/"
            self.url = rest if rest.startswith(b"/") else b"/" + rest
            return
        raise ValueError(self._target_error.message)  # the parser stops, and `send_400_response` answers

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop("body")
        self._in_head = True
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    # ------------------------------------------------------------------ answers that wait for the client
    def pause_writing(self) -> None:
        self._start("write", self.limits.write_seconds, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop("write")
        super().resume_writing()

    # ------------------------------------------------------------------ refusals
    def _late_head(self) -> None:
        self._stop("head")
        # The client may send the rest when it has the answer that it waits for.
        if self._owes_answers():
            self._start("head", self.limits.head_seconds, self._late_head)
            return
        # A connection that was never used has nobody who waits for an answer.
        if not self._begun:
            self.transport.close()
        else:
            self._refuse(_late("headers", self.limits.head_seconds))

    def _check_body(self) -> None:
        limits = self.limits
        left = self._body_began + limits.body_seconds + self._body / limits.body_rate - self.loop.time()
        # A server that does not read yet cannot blame the client.
        if self.flow.read_paused:
            left = max(left, 1.0)
        if left > 0:
            self._start("body", left, self._check_body)
            return
        self._stop("body")
        if self.cycle.response_started:
            self.transport.abort()
        else:
            self._refuse(_late("body", limits.body_seconds))

    def send_400_response(self, msg: str) -> None:
        if self._head > self.limits.head:
            error = HttpError(
                431, TOO_LONG, code="headers_too_large", hint=f"At most {self.limits.head >> 10} KB."
            )
        else:
            error = self._target_error or _unparsable()
        self._refuse(error)

    def _is_answering(self) -> bool:
        # uvicorn's class says that there always is one; before the first request there is none.
        cycle: Any = self.cycle
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def _is_read(self) -> bool:
        """Whether the newest request that the application has is the one that is being read."""
        cycle: Any = self.cycle
        return not self._in_head and cycle is not None and cycle.scope is self.scope

    def _owes_answers(self) -> bool:
        """Whether a request before the one that is being read has no whole answer yet."""
        cycle: Any = self.cycle
        if self._is_read():
            return bool(self.pipeline)
        return cycle is not None and not cycle.response_complete

    def on_response_complete(self) -> None:
        if self._refusal is None or self.pipeline:
            super().on_response_complete()
        elif not self.transport.is_closing():
            self._refuse(self._refusal)

    def _refuse(self, error: HttpError) -> None:
        # Written now, it would be read as the answer to an earlier request, which is being performed.
        if self._owes_answers():
            self._refusal = error
            if self._is_read():
                self.pipeline.popleft()
            return
        # Before an answer that is under way there is no place for another one.
        if self._is_answering():
            self.transport.abort()
            return
        # Before its headers are complete, the scope is that of an earlier request.
        name = new_id() if self._in_head else request_id(self.scope)
        answer = problems.problem_response(error, name, {REQUEST_ID: name})
        status = HTTPStatus(error.given_status)
        head = [b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()), b"connection: close\r\n"]
        head += [b"%s: %s\r\n" % pair for pair in answer.raw_headers]
        self.transport.write(b"".join([*head, b"\r\n", bytes(answer.body)]))
        self.transport.close()


_ABSOLUTE: Final = re.compile(rb"https?://(?P<host>[^/?#@]+)(?P<rest>[/?][^#]*)?\Z", re.IGNORECASE)


def _bad_target(problem: str) -> HttpError:
    return HttpError(
        400, f"the request target {problem}", code="bad_request", hint="Send the path of this server only."
    )


def _early_upgrade() -> HttpError:
    return HttpError(
        400,
        "a WebSocket was asked for before the requests before it were answered.",
        code="bad_request",
        hint="Open it on a connection of its own.",
    )


def _unparsable() -> HttpError:
    """With the reason of the parser, whose error is being handled."""
    error = sys.exception()
    # A callback's error says nothing of the request.
    known = isinstance(error, HttpParserError) and not isinstance(error, HttpParserCallbackError)
    reason = str(error).strip().rstrip(".") if known else ""
    return HttpError(
        400,
        f"the request cannot be parsed: {reason}." if reason else "the request cannot be parsed.",
        code="bad_request",
        hint="Send a request of HTTP/1.1, without TLS, with valid headers.",
    )


def _late(what: str, seconds: float) -> HttpError:
    return HttpError(
        408,
        f"the {what} of the request did not arrive in time ({seconds:g} s).",
        code="request_timeout",
        hint="Send the request again, without long pauses.",
    )
