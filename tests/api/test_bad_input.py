"""Everything that can be malformed, at every route that there is. Made from the routes: a new one is in it.

Never a 5xx, always a problem document that says what is wrong, nothing of the inside, nothing changed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import msgspec
import pytest

from holdfast import Holdfast
from holdfast.api.app import ApiSettings
from holdfast.api.pages.all import PAGES
from holdfast.api.pages.negotiation import TAG
from holdfast.api.problems import MEDIA
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import Route
from tests.api.conftest import Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-BAD-01")]

ROUTES: Final = [route for theme in THEMES for route in theme.found]
FIRST: Final = {route.tag: route for route in reversed(ROUTES)}
MOST: Final = 20_000
AT_ONCE: Final = 8

NAMES: Final = (
    "nothing", "\0", "x" * 5000, "../../etc/passwd", "💥é", "' OR 1=1 --", "{run}", "%", " ", "-1",
    "00000000-0000-4000-8000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "a\r\nSet-Cookie: b=c",
)  # fmt: skip
BODIES: Final = (
    b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe\x00", b"[" * 5000, b'{"a":' * 2000, b"1e999",
    b'{"":{}}', b'{"unknown_field": 1}', b'{"a": "\\ud800"}', b"<xml/>", b"a=b&c=d", b"x" * (MOST + 1),
)  # fmt: skip
VALUES: Final[tuple[Any, ...]] = (
    None, [], {}, [[1]], -1, 1e308, 10**30, "", "\0", "x" * 3000, True, {"\0": 1}
)  # fmt: skip
PARAMETERS: Final = (
    "", "\0", "-1", "0", "99999999999999999999999", "NaN", "x" * 800, "💥", "WzFd", "e30", "bnVsbA", "[]",
)  # fmt: skip
HEADERS: Final = (
    {"If-Match": '"'}, {"If-Match": "W/x, *, ,"}, {"If-None-Match": "," * 500}, {"Idempotency-Key": ""},
    {"Idempotency-Key": "k" * 500}, {"Content-Type": "text/plain; charset=\x7f"}, {"Accept": "*/*;q=x"},
    {"Last-Event-ID": "nothing"}, {"Last-Event-ID": "9" * 40}, {"X-Request-Id": "<script>" * 50},
    {"Accept-Encoding": "gzip;q=nan, zstd;;"}, {"Content-Encoding": "gzip"}, {"Prefer": "wait=forever"},
    {"Cookie": "holdfast_session=\x7f; =; ;"}, {"Origin": "null"}, {"Expect": "everything"},
)  # fmt: skip
CREDENTIALS: Final = (
    "",
    "Bearer",
    "Basic eDp4",
    "Bearer hf_x",
    "bearer " + "x" * 5000,
    "Bearer é",
)
SECRETS: Final = re.compile(rb"Traceback|File \"|site-packages|sqlite_|apsw|asyncpg|/src/holdfast")

Sent = tuple[str, dict[str, Any]]


def filled(path: str, name: str) -> str:
    return re.sub(r"\{\w+(:\w+)?\}", quote(name, safe=""), path)


def odd_paths(route: Route) -> Iterator[Sent]:
    for name in NAMES if route.params else ():
        yield filled(route.path, name), {"json": {}} if route.body is not None else {}


def odd_bodies(route: Route) -> Iterator[Sent]:
    if route.body is None:
        return
    path = filled(route.path, "nothing")
    for body in BODIES:
        yield path, {"content": body, "headers": {"Content-Type": "application/json"}}
    if not issubclass(route.body, msgspec.Struct):
        return
    fields = [field.encode_name for field in msgspec.structs.fields(route.body)]
    for value in VALUES:
        yield path, {"json": dict.fromkeys(fields, value)}
    for field in fields:
        yield path, {"json": {field: [{"\0": []}]}}


def odd_queries(route: Route) -> Iterator[Sent]:
    path = filled(route.path, "nothing")
    yield path, {"params": {"no_such_parameter": "1"}}
    if route.query is not None:
        fields = [field.encode_name for field in msgspec.structs.fields(route.query)]
        for value in PARAMETERS:
            yield path, {"params": dict.fromkeys(fields, value)}
        for field in fields:
            for value in ("\0", "💥", "-1", "x" * 800):
                yield path, {"params": {field: value}}


def odd_headers(route: Route) -> Iterator[Sent]:
    """Most are read before the route is known; those that read some themselves get all."""
    if route is not FIRST[route.tag] and not (route.keyed or route.guarded or route.media):
        return
    path, body = filled(route.path, "nothing"), {"json": {}} if route.body is not None else {}
    for headers in HEADERS:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        yield path, {"headers": raw, **body}
    for credential in CREDENTIALS:
        yield path, {"headers": [(b"Authorization", credential.encode("latin-1"))], **body}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Server]:
    settings = ApiSettings(pace=0, anonymous_pace=0, most_body=MOST, most_file=MOST)
    async with Holdfast(f"sqlite:{tmp_path / 'b.db'}") as hf, serving(hf, settings) as found:
        yield found


async def complaint(client: httpx2.AsyncClient, route: Route, path: str, sent: dict[str, Any]) -> str | None:
    """What is wrong with the answer; None: nothing."""
    try:
        async with client.stream(route.method, path, **sent) as answer:
            kind = answer.headers.get("content-type", "")
            if "event-stream" in kind:
                return None
            body = await answer.aread()
    except httpx2.HTTPError as error:
        return f"no answer: {error!r}"
    if answer.status_code >= 500:
        return f"{answer.status_code} {body[:300]!r}"
    if SECRETS.search(body):
        return f"it tells of the inside: {body[:300]!r}"
    if answer.status_code >= 400 and route.tag != TAG:
        if not kind.startswith(MEDIA):
            return f"{answer.status_code} as {kind}"
        reply = answer.json()
        if reply["status"] != answer.status_code or not (
            reply["title"] and reply["detail"] and reply["code"]
        ):
            return f"a problem that says nothing: {reply}"
    return None


async def complaints(server: Server, sent: list[tuple[Route, Sent]]) -> list[str]:
    wrong: list[str] = []
    gate = asyncio.Semaphore(AT_ONCE)

    async def look(route: Route, path: str, more: dict[str, Any]) -> None:
        async with gate:
            found = await complaint(server.client, route, path, more)
        if found is not None:
            wrong.append(f"{route.method} {path[:150]} {str(more)[:200]}: {found}")

    await asyncio.gather(*(look(route, *each) for route, each in sent))
    return wrong


@pytest.mark.parametrize("odd", [odd_paths, odd_bodies, odd_queries, odd_headers])
async def test_nothing_malformed_is_more_than_a_problem(hall: Server, odd: Any) -> None:
    sent = [(route, each) for route in ROUTES for each in odd(route)]
    assert len(sent) > 100
    wrong = await complaints(hall, sent)
    assert not wrong, "\n".join(wrong[:20])
    # Whatever came, nothing was made of it.
    assert (await hall.json("GET", "/v1/runs"))["items"] == []


async def test_forms_that_are_malformed_are_more_than_nothing_and_less_than_a_slip(hall: Server) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    parts = {"Content-Type": "multipart/form-data; boundary=x", "Accept": "text/html"}
    sent: list[tuple[Route, Sent]] = []
    for route in PAGES:
        page = {"headers": {"Accept": "text/html"}}
        sent += [(route, (filled(route.path, name), page)) for name in NAMES[:6]]
        if route.method == "POST":
            path = filled(route.path, "nothing")
            bodies = (b"", b"%", b"a" * MOST, b"\xff=\xfe&act=%00", b"--x\r\nbroken", b"act=&" * 2000)
            sent += [(route, (path, {"content": b, "headers": h})) for b in bodies for h in (form, parts)]
    assert not (wrong := await complaints(hall, sent)), "\n".join(wrong[:20])
