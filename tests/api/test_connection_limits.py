"""Limits of a connection: headers, half-sent requests, bodies, readers that do not read, open connections."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from starlette.responses import StreamingResponse
from uvicorn.server import ServerState

from holdfast import Holdfast
from holdfast.api.auth.rights import Access
from holdfast.api.http_protocol import ConnectionLimits
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.settings import ApiSettings
from tests.api.conftest import Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-01")]

SOON: Final = 0.2
NEVER: Final = 600.0
HOST: Final = b"Host: localhost\r\n"
PAGE: Final = Path(__file__).parents[2] / "docs/reference/http.md"

endless = Routes("endless")


@endless.get("/endless", needs=Access.public)
async def get_endless(call: ApiCall) -> StreamingResponse:
    """Without end."""

    async def parts() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536
            await asyncio.sleep(0)

    return StreamingResponse(parts())


@asynccontextmanager
async def limited(**limits: Any) -> AsyncIterator[Server]:
    none = {name: NEVER for name in ConnectionLimits.__struct_fields__ if name.endswith("_seconds")}
    found = ConnectionLimits(**{**none, **limits})
    async with Holdfast("memory:") as hf, serving(hf, themes=[*THEMES, endless], limits=found) as server:
        yield server


class Caller:
    """A connection on which bytes are sent as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """Until the server closes the connection."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    async def drip(self, data: bytes) -> bytes:
        """The same bytes again and again, until the server closes the connection."""
        task = asyncio.create_task(self.rest())
        while not task.done():
            try:
                await self.send(data)
            except ConnectionError:
                break
            await asyncio.sleep(SOON / 10)
        return await task


@asynccontextmanager
async def caller(server: Server) -> AsyncIterator[Caller]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.serving.port)
    try:
        yield Caller(reader, writer)
    finally:
        writer.close()


def state(server: Server) -> ServerState:
    return server.serving._server.server_state


async def until(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110 - nothing tells that a connection has ended
        await asyncio.sleep(0.01)


def said(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"application/problem+json" in head
    return int(head.split()[1]), msgspec.json.decode(body)["code"]


HALVES: Final = {
    "nothing": b"",
    "empty lines": b"\r\n",
    "a part of the first line": b"GET /v1/ru",
    "headers without their end": b"GET /v1/runs HTTP/1.1\r\n" + HOST,
    "a part of a header": b"GET /v1/runs HTTP/1.1\r\nHos",
}


@pytest.mark.parametrize("half", HALVES)
async def test_half_sent_head_ends_in_time(half: str) -> None:
    async with limited(head_seconds=SOON) as server, caller(server) as found:
        await found.send(HALVES[half])
        answer = await found.rest()
        assert not answer if HALVES[half].strip() == b"" else said(answer) == (408, "request_timeout")


@pytest.mark.parametrize("drop", [b"\r\n", b"X-A: b\r\n"])
async def test_head_sent_byte_by_byte_ends_in_time(drop: bytes) -> None:
    start = b"" if drop == b"\r\n" else b"GET /v1/runs HTTP/1.1\r\n" + HOST
    async with limited(head_seconds=SOON) as server, caller(server) as found:
        await found.send(start)
        await found.drip(drop)
    async with limited(head_seconds=SOON) as server, caller(server) as found:
        # On a connection that was used before, too.
        await found.send(b"GET /v1/session HTTP/1.1\r\n" + HOST + b"\r\n")
        await found.reader.readuntil(b"\r\n\r\n")
        await found.send(start)
        await found.drip(drop)


@pytest.mark.parametrize(
    "head", [b"Content-Length: 1000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"]
)
async def test_half_sent_body_ends_in_time(head: bytes) -> None:
    async with limited(body_seconds=SOON) as server:
        start = b"POST /v1/session HTTP/1.1\r\n" + HOST
        async with caller(server) as found:
            await found.send(start + head)
            assert said(await found.rest()) == (408, "request_timeout")
        async with caller(server) as found:
            # Some bytes now and then are below the rate.
            await found.send(start + b"Content-Length: 100000\r\n\r\n")
            await found.drip(b" ")
        async with caller(server) as found:
            # It was answered before its body arrived: the rest is not waited for.
            await found.send(start + b"Content-Length: 9000000\r\n\r\n")
            await found.drip(b" ")


async def test_steady_body_may_take_longer() -> None:
    async with limited(body_seconds=SOON, body_rate=1) as server, caller(server) as found:
        body = b'{"token": "' + b"x" * 20 + b'"}'
        start = b"POST /v1/session HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body)
        await found.send(start + body[:10])
        await asyncio.sleep(2 * SOON)
        await found.send(body[10:])
        head = await found.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 401")


async def test_reader_who_does_not_read_is_disconnected() -> None:
    async with limited(write_seconds=SOON) as server, caller(server) as found:
        found.reader._limit = 1  # type: ignore[attr-defined]
        await found.send(b"GET /v1/endless HTTP/1.1\r\n" + HOST + b"\r\n")
        await until(lambda: not state(server).connections)


# The last part is the one that is too long: what is sent after it could discard the answer.
LONG: Final = {
    "a first line": [b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\n"],
    "a header": [b"GET / HTTP/1.1\r\nX-A: " + b"x" * 5000 + b"\r\n\r\n"],
    "a header without end": [b"GET / HTTP/1.1\r\nX-A: ", *[b"x" * 1000] * 5],
    "a header's name without end": [b"GET / HTTP/1.1\r\n", *[b"x" * 1000] * 5],
    "many headers": [b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % at for at in range(600))],
    "trailers": [
        b"POST /v1/session HTTP/1.1\r\n"
        + HOST
        + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
        + b"".join(b"X-%d: y\r\n" % at for at in range(600)),
    ],
}


@pytest.mark.parametrize("case", LONG)
async def test_head_that_is_too_long_is_refused(case: str) -> None:
    async with limited(head=4096) as server, caller(server) as found:
        for part in LONG[case]:
            await found.send(part)
        assert said(await found.rest()) == (431, "headers_too_large")


async def test_trailers_are_not_headers() -> None:
    async with limited() as server, caller(server) as found:
        token = f"Authorization: Bearer {server.token}\r\n".encode()
        start = b"POST /v1/flows/validate HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
        await found.send(start + b"2\r\n{}\r\n0\r\n" + token + b"\r\n")
        assert (await found.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401")


async def test_connections_beyond_the_limit_are_refused_and_the_others_served() -> None:
    async with limited(connections=2) as server, caller(server) as first, caller(server) as second:
        ask = b"GET /v1/session HTTP/1.1\r\n" + HOST + b"\r\n"
        for each in (first, second):
            await each.send(ask)
            await each.reader.readuntil(b"}")
        async with caller(server) as third:
            assert said(await third.rest()) == (503, "not_ready")
        await first.send(ask)
        assert (await first.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401")


async def test_client_that_leaves_in_the_middle_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with limited() as server:
        async with caller(server) as found:
            await found.send(b"POST /v1/session HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n{")
            await until(lambda: state(server).tasks)
        await until(lambda: not state(server).tasks)
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_page_says_the_limits_that_are_in_force() -> None:
    limits, settings = ConnectionLimits(), ApiSettings()
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE))
    assert rows["first line and headers"] == f"{limits.head >> 10} KB"
    assert rows["time for the headers"] == f"{limits.head_seconds:g} s"
    assert (
        rows["time for the body"]
        == f"{limits.body_seconds:g} s, and 1 s for each {limits.body_rate >> 10} KB"
    )
    assert rows["time to read a part of the answer"] == f"{limits.write_seconds:g} s"
    assert rows["pause between requests of a connection"] == f"{limits.idle_seconds:g} s"
    assert rows["connections"] == f"{limits.connections:,}"
    assert rows["body"] == f"{settings.most_body >> 20} MiB"
    assert rows["file"] == f"{settings.most_file >> 20} MiB"
