"""Headers that are believed: of named proxies only, and each one once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

import holdfast
from holdfast import Holdfast
from holdfast.api.auth.header_guard import LISTS, SINGLE
from holdfast.api.auth.rights import Access
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.server import HttpServer
from holdfast.errors import SettingsError
from tests.api.conftest import serving
from tests.api.test_connection_limits import caller, said

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-04")]

SOURCE: Final = Path(holdfast.__file__).parent / "api"
ASKED: Final = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
mirror = Routes("mirror")


class Seen(msgspec.Struct):
    client: str
    scheme: str


@mirror.get("/seen", needs=Access.public)
async def get_seen(call: ApiCall) -> Seen:
    """The caller as the server sees it."""
    client = call.request.client
    return Seen(client=client.host if client else "", scheme=call.request.url.scheme)


async def _seen(headers: dict[str, str], **options: Any) -> tuple[str, str]:
    async with Holdfast("memory:") as hf, serving(hf, themes=[mirror], **options) as server:
        found = await server.json("GET", "/v1/seen", headers=headers)
    return found["client"], found["scheme"]


async def test_forwarded_headers_of_others_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # uvicorn's own variable
    for proxies in ((), ("10.0.0.7",), ("10.0.0.0/8", "::1")):
        assert await _seen(ASKED, proxies=proxies) == ("127.0.0.1", "http")


@pytest.mark.parametrize("named", ["127.0.0.1", "127.0.0.0/8", "127.9.9.9/8"])
async def test_forwarded_headers_of_a_named_proxy_are_believed(named: str) -> None:
    assert await _seen(ASKED, proxies=(named,)) == ("203.0.113.9", "https")
    # What the proxy appended counts, not what its client wrote before.
    forged = {**ASKED, "X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
    assert await _seen(forged, proxies=(named,)) == ("203.0.113.9", "https")
    assert await _seen({}, proxies=(named,)) == ("127.0.0.1", "http")


@pytest.mark.parametrize("named", ["*", "", "proxy.example", "10.0.0.0/99", "10.0.0"])
def test_proxy_is_named_by_its_address(named: str) -> None:
    with pytest.raises(SettingsError, match="address of a proxy"):
        HttpServer(_app, host="127.0.0.1", port=0, proxies=(named,))


async def _app(scope: Any, receive: Any, send: Any) -> None: ...


async def test_header_with_one_value_is_refused_twice() -> None:
    async with Holdfast("memory:") as hf, serving(hf) as server:
        for name in sorted(SINGLE):
            first = "" if name == "host" else "Host: localhost\r\n"
            lines = f"{name}: 1\r\n{name.upper()}: 1\r\n"
            async with caller(server) as found:
                text = f"GET /v1/runs HTTP/1.1\r\n{first}{lines}Connection: close\r\n\r\n"
                await found.send(text.encode())
                assert said(await found.rest()) == (400, "bad_request"), name


async def test_header_with_a_list_may_be_repeated() -> None:
    async with Holdfast("memory:") as hf, serving(hf) as server:
        for name in sorted(LISTS):
            answer = await server.client.get("/v1/runs", headers=[(name, "a"), (name, "b")])
            assert answer.status_code == 200, name


async def test_request_without_a_host_is_refused() -> None:
    async with Holdfast("memory:") as hf, serving(hf) as server, caller(server) as found:
        await found.send(b"GET /v1/runs HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert said(await found.rest()) == (400, "bad_request")


async def test_socket_with_two_credentials_is_refused() -> None:
    async with Holdfast("memory:") as hf, serving(hf) as server, caller(server) as found:
        token = f"Authorization: Bearer {server.token}\r\n"
        lines = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        text = f"GET /v1/stream/ws HTTP/1.1\r\nHost: localhost\r\n{lines}{key}{token * 2}\r\n"
        await found.send(text.encode())
        assert (await found.reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 403")


def test_every_header_that_the_server_reads_is_in_one_of_the_tables() -> None:
    """A new one has one value or is a list: somebody has to say which."""
    read: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        read |= set(re.findall(r'\bheaders\.get\(\s*"([A-Za-z-]+)"', text))
        read |= set(re.findall(r'"([a-z-]+)" (?:not )?in [\w.]*headers\b', text))
        read |= set(re.findall(r'^[A-Z_]*HEADER[A-Z_]*(?:: Final)? = "([A-Za-z-]+)"', text, re.MULTILINE))
    ours = {"etag", "content-encoding", "content-disposition", "vary"}  # of answers
    assert len(read) > 12
    assert {name.lower() for name in read} - ours <= SINGLE | LISTS
    assert not SINGLE & LISTS


TARGETS: Final = {
    "http://localhost/v1/runs": 401,
    "HTTP://LOCALHOST/v1/runs?limit=1": 401,
    "https://localhost/v1/runs": 401,
    "http://localhost": 303,
    "http://localhost?a=1": 303,
    "http://evil.example/v1/runs": 400,
    "http://evil.example": 400,
    "http://localhost:80/v1/runs": 400,
    "http://localhost@evil.example/v1/runs": 400,
    "http://evil.example@localhost/v1/runs": 400,
    "http://localhost.evil.example/v1/runs": 400,
    "http:///v1/runs": 400,
    "ftp://localhost/v1/runs": 400,
    "localhost:80": 400,
    "*": 400,
    "v1/runs": 400,
    "//evil.example/v1/runs": 404,  # a path that begins with two slashes
}
"""Request targets, with the Host header localhost."""


@pytest.mark.covers("SAFE-EDGE-15")
@pytest.mark.parametrize("target", TARGETS)
async def test_target_that_names_another_host_is_refused(target: str) -> None:
    async with Holdfast("memory:") as hf, serving(hf) as server, caller(server) as found:
        head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
        await found.send(head.replace("text/html", "text/html" if TARGETS[target] == 303 else "*/*").encode())
        answer = await found.rest()
        assert int(answer.split()[1]) == TARGETS[target]
        if TARGETS[target] == 303:
            assert b"location: /" in answer.lower()


HINTS: Final = {
    "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n": "Content-Length",
    "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n": "Content-Length",
    "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n": (
        "Transfer-Encoding"
    ),
    "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: x\r\n": "Transfer-Encoding",
    "GET /v1/runs HTTP/1.1\r\n": "Host",
    "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n": "host",
    "GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n": "Host",
    "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nA B: c\r\n": "header",
}


@pytest.mark.covers("SAFE-EDGE-15")
@pytest.mark.parametrize("head", HINTS)
async def test_refusal_says_which_part_of_the_request_is_wrong(head: str) -> None:
    async with Holdfast("memory:") as hf, serving(hf) as server, caller(server) as found:
        await found.send(f"{head}Connection: close\r\n\r\n".encode())
        problem = msgspec.json.decode((await found.rest()).partition(b"\r\n\r\n")[2])
        assert HINTS[head] in problem["detail"]
        assert "each of these" not in problem["hint"]
