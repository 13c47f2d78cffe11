"""Every answer has an X-Request-Id, whichever part of the server makes it; a problem has the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest
from starlette.types import ASGIApp

import holdfast.api.app
from holdfast import Holdfast
from holdfast.api.app import ApiSettings, build
from holdfast.api.health import ReadinessApp, ServerState
from holdfast.api.pages.all import PAGES
from holdfast.api.routes.all import THEMES
from tests.api.conftest import Server, serving
from tests.api.test_connection_limits import HOST, SOON, caller, limited
from tests.api.test_matrix import filled

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-15")]

ROUTES: Final = [*(route for theme in THEMES for route in theme.found), *PAGES]
GIVEN: Final = "given-by-the-caller.1"
RAW: Final = {
    "another host": b"GET /v1/runs HTTP/1.1\r\nHost: evil.example\r\n",
    "no host": b"GET /v1/runs HTTP/1.1\r\n",
    "two credentials": b"GET /v1/runs HTTP/1.1\r\n" + HOST + b"Authorization: a\r\nAuthorization: b\r\n",
    "no credential": b"GET /v1/runs HTTP/1.1\r\n" + HOST,
    "no such path": b"GET /nothing HTTP/1.1\r\n" + HOST,
    "a method that is not allowed": b"PATCH /v1/runs HTTP/1.1\r\n" + HOST,
    "a preflight": b"OPTIONS /v1/runs HTTP/1.1\r\nOrigin: https://app.example\r\n"
    b"Access-Control-Request-Method: GET\r\n" + HOST,
    "a preflight of a stranger": b"OPTIONS /v1/runs HTTP/1.1\r\nOrigin: https://evil.example\r\n"
    b"Access-Control-Request-Method: GET\r\n" + HOST,
    "the document": b"GET /openapi.json HTTP/1.1\r\n" + HOST,
    "liveness": b"GET /healthz HTTP/1.1\r\n" + HOST,
    "readiness": b"GET /readyz HTTP/1.1\r\n" + HOST,
    "a style": b"GET /static/style.css HTTP/1.1\r\n" + HOST,
    "a socket of a stranger": b"GET /v1/stream/ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Origin: https://evil.example\r\n" + HOST,
    "an address of another host": b"GET http://evil.example/ HTTP/1.1\r\n" + HOST,
    "a length that is none": b"POST /v1/runs HTTP/1.1\r\nContent-Length: x\r\n" + HOST,
    "headers that are too long": b"GET /v1/runs HTTP/1.1\r\nX-Long: " + b"x" * 70_000 + b"\r\n" + HOST,
    "no HTTP": b"\x16\x03\x01\r\n",
}
"""The heads of requests that are answered in different parts of the server."""


def _id_of(answer: bytes) -> str:
    """The header, of which there is one; a problem document names the same id."""
    head, _, body = answer.partition(b"\r\n\r\n")
    found = [
        line.split(b": ", 1)[1] for line in head.split(b"\r\n") if line.lower().startswith(b"x-request-id:")
    ]
    assert len(found) == 1, head.decode()
    if b"application/problem+json" in head:
        assert msgspec.json.decode(body)["request_id"] == found[0].decode()
    return found[0].decode()


@asynccontextmanager
async def _ready(*, opened: bool = True) -> AsyncIterator[Server]:
    async with Holdfast("memory:") as hf:
        state = ServerState()
        if opened:
            state.store = await hf.open()
        settings = ApiSettings(hosts=("localhost",), origins=("https://app.example",))

        def wrapped(*given: Any) -> ASGIApp:
            return ReadinessApp(build(*given), state)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.api.conftest.build", wrapped)
            async with serving(hf, settings) as server:
                yield server


@pytest.mark.parametrize("opened", [True, False])
async def test_every_kind_of_answer_has_an_id(opened: bool) -> None:
    async with _ready(opened=opened) as server:
        seen: list[str] = []
        for what, head in RAW.items():
            async with caller(server) as found:
                await found.send(head + b"Connection: close\r\n\r\n")
                answer = await found.rest()
                assert answer, what
                seen.append(_id_of(answer))
    assert len(set(seen)) == len(seen)


async def test_every_route_answers_with_an_id(server: Server) -> None:
    for route in ROUTES:
        headers = {"Accept": "text/html", "X-Request-Id": GIVEN}
        # Without its body: some answers are streams.
        async with server.client.stream(route.method, filled(route.path), headers=headers) as answer:
            assert answer.headers.get_list("x-request-id") == [GIVEN], route.path


async def test_late_request_is_answered_with_an_id() -> None:
    async with limited(head_seconds=SOON) as server, caller(server) as found:
        await found.send(b"GET /v1/runs HTTP/1.1\r\n")
        assert _id_of(await found.rest())
    async with limited(body_seconds=SOON) as server, caller(server) as found:
        head = f"POST /v1/runs HTTP/1.1\r\nContent-Length: 9\r\nX-Request-Id: {GIVEN}\r\n".encode()
        await found.send(head + HOST + f"Authorization: Bearer {server.token}\r\n\r\n".encode())
        assert _id_of(await found.rest()) == GIVEN


async def test_connection_beyond_the_limit_is_answered_with_an_id() -> None:
    async with limited(connections=1) as server, caller(server) as first:
        await first.send(b"GET /v1/runs HTTP/1.1\r\n")
        async with caller(server) as second:
            assert _id_of(await second.rest())


async def test_failure_of_the_server_has_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: Any) -> None:
        raise RuntimeError("x")

    monkeypatch.setattr(holdfast.api.app, "handle", failing)
    async with Holdfast("memory:") as hf, serving(hf) as server:
        answer = await server.client.get("/v1/runs")
        assert answer.status_code == 500
        assert answer.headers["x-request-id"] == answer.json()["request_id"]


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a\tb", "ä"])
async def test_id_that_is_not_well_formed_is_replaced(server: Server, given: str) -> None:
    headers = {"X-Request-Id": given.encode("latin-1")}
    answer = await server.client.get("/v1/runs", headers=headers)
    assert answer.headers["x-request-id"] not in ("", given)
