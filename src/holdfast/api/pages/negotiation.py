"""Content negotiation: on shared paths (`/runs/{run}`) browsers get pages and programs get JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as Place
from starlette.types import Scope

from holdfast.api.auth.principal import Principal
from holdfast.api.pages.render import page, redirect
from holdfast.api.problems import HttpError, problem_of
from holdfast.api.routing import Route, Routes
from holdfast.errors import HoldfastError

TAG: Final = "pages"
FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_SHARED: Final = ("/runs", "/holds", "/flows")
"""First parts of pages' paths; no page has another one that begins like them."""

Endpoint = Callable[[Request], Awaitable[Response]]


def pages() -> Routes:
    """Routes for people: declared like all others, with their rights, but not in the OpenAPI document."""
    return Routes(TAG, prefix="", reads_body=True)


def page_route(route: Route, endpoint: Endpoint, *, shares_paths: bool = True) -> Place:
    """`shares_paths`: the API has some of the same paths."""
    methods = ["GET", "HEAD"] if route.method == "GET" else [route.method]
    found = PageRoute(route.path, endpoint, methods=methods)
    found.shares_paths = shares_paths
    return found


class PageRoute(Place):
    """Other methods do not match, because the API may have that path too."""

    shares_paths = True

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match is not Match.FULL or not self._is_meant(scope):
            return Match.NONE, {}
        return match, child

    def _is_meant(self, scope: Scope) -> bool:
        headers = {name: value for name, value in scope["headers"] if name in (b"accept", b"content-type")}
        if scope["method"] == "POST":
            return headers.get(b"content-type", b"").decode("latin-1").lower().startswith(FORMS)
        shared = self.shares_paths and self.path.startswith(_SHARED)
        return not shared or self.path.endswith(".svg") or wants_page(headers.get(b"accept", b""))


def wants_page(accept: bytes) -> bool:
    return b"text/html" in accept


def internal_error_page(request: Request, who: Principal | None, request_id: str) -> Response:
    """An error of the server; the log has its traceback."""
    slip = HttpError(
        500,
        "the server failed to process this request.",
        code="internal",
        hint="Report the request id to the operator of this server.",
    )
    return error_page(request, slip, who, request_id)


def error_page(request: Request, error: HoldfastError, who: Principal | None, request_id: str) -> Response:
    """An error as a page. A person who is not signed in is sent to the sign-in page, and back afterwards."""
    problem, _ = problem_of(error, request_id)
    if problem.status == 401:
        asked = quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""), safe="/")
        return redirect(
            f"/sign-in?next={asked}" if request.method in ("GET", "HEAD") else "/sign-in", request
        )
    return page(
        request, "problem.html", who=who, status=problem.status, problem=problem, request_id=request_id
    )
