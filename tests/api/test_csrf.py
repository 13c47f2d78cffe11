"""Which changes with a session need no CSRF token: every combination of what a browser can send."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import pytest
from starlette.requests import Request

from holdfast import Holdfast
from holdfast.api.aliases import ALIAS, ALIASES, Alias
from holdfast.api.app import ApiSettings
from holdfast.api.auth import csrf
from holdfast.api.auth.principal import Principal
from holdfast.api.problems import HttpError
from holdfast.api.routes.all import THEMES
from holdfast.types.terms import Actor
from tests.api.conftest import serving
from tests.api.sign_in import browser, session
from tests.api.test_matrix import PUBLIC, filled, name_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-17")]

OWN: Final = "http://holdfast.example:8420"
ORIGINS: Final = (
    None, "", "null", OWN, OWN.upper(), "http://holdfast.example", "https://holdfast.example:8420",
    "http://holdfast.example:84200", "http://holdfast.example:8420.evil.example", "http://evil.example:8420",
    "http://holdfast.example:8420/", "http://user@holdfast.example:8420", f"{OWN}, http://evil.example",
)  # fmt: skip
"""None: the header is missing, as in older browsers."""
SITES: Final = (None, "same-origin", "same-site", "cross-site", "none", "", "Same-Origin")
MODES: Final = (None, "cors", "same-origin", "no-cors", "navigate", "websocket")
DESTINATIONS: Final = (None, "empty", "document", "iframe", "object")
FETCH_TYPES: Final = (None, "application/json", "text/plain;charset=UTF-8", "application/octet-stream")
FORM_TYPES: Final = (
    "text/plain", "TEXT/PLAIN", "text/plain; boundary=x", "application/x-www-form-urlencoded",
    "application/x-www-form-urlencoded; charset=UTF-8", "multipart/form-data; boundary=x",
    "multipart/form-data; charset=utf-8; boundary=x",
)  # fmt: skip
RUNTIME: Final = next(each for each in ALIASES if each.runtime)
WHO: Final = Principal(
    actor=Actor(id="user:dana"), rights=frozenset(), method="session", credential="c", csrf="secret"
)


def _request(alias: Alias | None, **headers: str | None) -> Request:
    found = [(b"host", b"holdfast.example:8420"), (b"content-length", b"2")]
    found += [
        (name.replace("_", "-").encode(), value.encode())
        for name, value in headers.items()
        if value is not None
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/",
        "query_string": b"",
        "headers": found,
    }
    return Request({**scope, **({} if alias is None else {ALIAS: alias})}, _nothing)


async def _nothing() -> dict[str, object]:
    return {"type": "http.request", "body": b"--x--", "more_body": False}


async def _passes(request: Request) -> bool:
    try:
        await csrf.require_own(request, WHO, csrf.own_origins(request, None), most_form=1000)
    except HttpError:
        return False
    return True


async def test_only_a_fetch_of_our_own_page_needs_no_token() -> None:
    passed = 0
    for origin, site, mode, target, kind in product(
        ORIGINS, SITES, MODES, DESTINATIONS, FETCH_TYPES + FORM_TYPES
    ):
        sent = {
            "origin": origin, "sec_fetch_site": site, "sec_fetch_mode": mode, "sec_fetch_dest": target,
            "content_type": kind,
        }  # fmt: skip
        own = (
            origin in (OWN, OWN.upper())
            and site in (None, "same-origin")
            and mode in (None, "cors", "same-origin", "no-cors")
            and target in (None, "empty")
            and kind in FETCH_TYPES
        )
        assert await _passes(_request(RUNTIME, **sent)) is own, sent
        passed += own
    assert passed == 2 * 2 * 4 * 2 * 4


async def test_no_headers_replace_the_token_on_other_paths() -> None:
    for alias in (None, *(each for each in ALIASES if not each.runtime)):
        for origin, site, kind in product(
            (None, OWN, "null"), (None, "same-origin"), FETCH_TYPES + FORM_TYPES
        ):
            sent = {"origin": origin, "sec_fetch_site": site, "content_type": kind}
            assert not await _passes(_request(alias, **sent)), (alias, sent)


async def test_token_does_not_replace_the_headers_of_a_page_of_another_site() -> None:
    for alias, origin, site in product((None, RUNTIME), ORIGINS, SITES):
        sent = {
            "origin": origin, "sec_fetch_site": site, "content_type": "application/json",
            "x_csrf_token": "secret",
        }  # fmt: skip
        allowed = site in (None, "same-origin", "none") and (
            origin in (None, OWN, OWN.upper()) or (origin == "null" and site in (None, "same-origin"))
        )
        assert await _passes(_request(alias, **sent)) is allowed, sent


async def test_every_change_is_refused_with_a_session_and_what_another_site_can_send() -> None:
    """Over the route table, under every path that a route has."""
    unlimited = ApiSettings(pace=0, anonymous_pace=0)
    async with Holdfast("memory:") as hf, serving(hf, unlimited) as server:
        own = server.serving.address
        sent = (
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/json"},
            {"Origin": "null", "Content-Type": "text/plain;charset=UTF-8"},
            {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
            # A form in our own page.
            {"Origin": own, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"},
            {"Origin": own, "Content-Type": "text/plain"},
        )
        tried = 0
        async with browser(server, await session(server, "user:dana", "admin")) as client:
            for method, path in _changes():
                for headers in sent:
                    tried += 1
                    answer = await client.request(method, path, content=b'{"a":"="}', headers=headers)
                    assert answer.status_code in (403, 415), (path, headers, answer.text)
    assert tried > 500


def _changes() -> Iterator[tuple[str, str]]:
    for route in [route for theme in THEMES for route in theme.found]:
        if route.method not in csrf.SAFE and name_of(route) not in PUBLIC:
            path = filled(route.path)
            yield route.method, path
            for alias in ALIASES:
                if path.startswith(f"{alias.target}/"):
                    yield route.method, alias.prefix + path.removeprefix(alias.target)
