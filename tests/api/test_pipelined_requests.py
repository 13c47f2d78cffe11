"""Several requests on one connection, sent without waiting for the answers: each answer is that of its
request, in their order, whatever follows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from starlette.responses import StreamingResponse

from holdfast import Holdfast
from holdfast.api.auth.rights import Access
from holdfast.api.http_protocol import ConnectionLimits
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import ApiCall, Routes
from tests.api.conftest import Server, serving
from tests.api.test_connection_limits import HOST, NEVER, SOON, caller, state, until

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-01")]

slow = Routes("slow")
released: dict[str, asyncio.Event] = {}


@slow.get("/slow", needs=Access.public)
async def get_slow(call: ApiCall) -> dict[str, str]:
    """Answers when it is released."""
    await released["slow"].wait()
    return {"found": "slow"}


@slow.get("/parts", needs=Access.public)
async def get_parts(call: ApiCall) -> StreamingResponse:
    """Begins at once, and ends when it is released."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"first,"
        await released["slow"].wait()
        yield b"second"

    return StreamingResponse(parts())


@slow.get("/quick", needs=Access.public)
async def get_quick(call: ApiCall) -> dict[str, str]:
    """Answers at once."""
    return {"found": "quick"}


@asynccontextmanager
async def limited(**limits: Any) -> AsyncIterator[Server]:
    none = {name: NEVER for name in ConnectionLimits.__struct_fields__ if name.endswith("_seconds")}
    found = ConnectionLimits(**{**none, "idle_seconds": SOON, **limits})
    released["slow"] = asyncio.Event()
    async with Holdfast("memory:") as hf, serving(hf, themes=[*THEMES, slow], limits=found) as server:
        yield server


def get(path: str) -> bytes:
    return b"GET /v1/" + path.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\n"


def answers(data: bytes) -> list[tuple[int, bytes]]:
    """Status and body of each answer on a connection."""
    found: list[tuple[int, bytes]] = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 "), head
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        body, data = _sized(data, int(length[1])) if length else _chunked(data)
        found.append((int(head.split()[1]), body))
    return found


def _sized(data: bytes, size: int) -> tuple[bytes, bytes]:
    return data[:size], data[size:]


def _chunked(data: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        part, data = _sized(data, int(size, 16))
        body, data = body + part, data.removeprefix(b"\r\n")
        if not part:
            return body, data


FIRST: Final = {"slow": b'{"found":"slow"}', "parts": b"first,second"}
WRONG: Final = {
    "no HTTP": (b"garbage\r\n\r\n", 400),
    "no path": (b"GET nowhere HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "another host": (b"GET http://other/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a long head": (b"GET / HTTP/1.1\r\nX-A: " + b"x" * 5000 + b"\r\n\r\n", 431),
    "a broken body": (
        b"POST /v1/runs HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        400,
    ),
    "an upgrade": (
        get("stream/ws").replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
        400,
    ),
}


@pytest.mark.parametrize("at_once", [True, False], ids=["in one packet", "later"])
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("first", FIRST)
async def test_request_is_answered_as_it_is_when_one_that_cannot_be_read_follows(
    first: str, wrong: str, at_once: bool
) -> None:
    """It was performed: the refusal of the next one is no answer to it."""
    data, status = WRONG[wrong]
    async with limited(head=4096) as server, caller(server) as found:
        for part in [get(first) + data] if at_once else [get(first), data]:
            await found.send(part)
            await asyncio.sleep(SOON / 4)
        released["slow"].set()
        answered, (refused, _) = answers(await found.rest())
        assert (answered, refused) == ((200, FIRST[first]), status)


@pytest.mark.parametrize("wrong", WRONG)
async def test_three_requests_are_answered_in_their_order_before_one_that_cannot_be_read(wrong: str) -> None:
    data, status = WRONG[wrong]
    async with limited(head=4096) as server, caller(server) as found:
        await found.send(get("slow") + get("quick") + get("quick") + data + get("quick"))
        await asyncio.sleep(SOON / 4)
        released["slow"].set()
        assert [given for given, _ in answers(await found.rest())] == [200, 200, 200, status]


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("rest", [b"\r\n", b"GET /v1/qui"], ids=["an empty line", "half a request"])
async def test_request_is_answered_however_long_that_takes_when_a_part_of_the_next_one_has_come(
    first: str, rest: bytes
) -> None:
    async with limited(head_seconds=SOON) as server, caller(server) as found:
        await found.send(get(first))
        await asyncio.sleep(SOON / 4)
        await found.send(rest)
        await asyncio.sleep(2 * SOON)
        released["slow"].set()
        assert answers(await found.rest())[0] == (200, FIRST[first])


async def test_stream_ends_when_its_client_leaves_who_has_asked_for_more() -> None:
    async with limited() as server:
        async with caller(server) as found:
            await found.send(get("parts") + get("quick"))
            await found.reader.readuntil(b"first,")
            assert state(server).tasks
        await until(lambda: not state(server).tasks)
