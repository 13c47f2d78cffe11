"""The signpost chooses what asking every route in turn would choose."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match, Mount, WebSocketRoute
from starlette.routing import Route as Place

from holdfast import Holdfast
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.route_index import RouteIndex
from holdfast.api.routes.all import THEMES

ODD = ("/", "//", "", "/v1", "/v1/", "/v1/runs/", "/v1/runs/a/b/c/d/e", "/nothing", "/v1/nothing", "/x" * 40)
FILLED = ("x", "runs", "v1", "pending", "a b")


def app() -> Starlette:
    hf = Holdfast("memory:")
    return build(hf, Authenticator(hf), ApiSettings(), THEMES)


def signposts(routes: list[BaseRoute]) -> list[tuple[str, RouteIndex]]:
    found: list[tuple[str, RouteIndex]] = []
    for each in routes:
        if isinstance(each, Mount):
            found += [(each.path, post) for _, post in signposts(each.routes)]
        elif isinstance(each, RouteIndex):
            found.append(("", each))
    return found


def paths(post: RouteIndex) -> set[str]:
    made = set(ODD)
    for route in post.routes:
        assert isinstance(route, (Place, WebSocketRoute))
        for word in FILLED:
            made.add("/".join(word if part.startswith("{") else part for part in route.path.split("/")))
    return made


def chosen(post: RouteIndex, scope: dict[str, Any]) -> tuple[Match, BaseRoute | None]:
    """As Starlette's own router chooses."""
    partial: BaseRoute | None = None
    for route in post.routes:
        match, _ = route.matches(dict(scope))
        if match is Match.FULL:
            return match, route
        if match is Match.PARTIAL and partial is None:
            partial = route
    return (Match.NONE, None) if partial is None else (Match.PARTIAL, partial)


@pytest.mark.covers("SERVER-PROOF-04")
@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_signpost_leads_where_asking_every_route_leads(kind: str, method: str) -> None:
    found = signposts(app().routes)
    assert {where for where, _ in found} == {"", "/api", "/plain"}
    for where, post in found:
        for path in paths(post):
            scope: dict[str, Any] = {
                "type": kind, "method": method, "path": f"{where}{path}", "root_path": where,
                "headers": [(b"accept", b"text/html")],
            }  # fmt: skip
            match, child = post.matches(dict(scope))
            assert (match, child.get("holdfast.route")) == chosen(post, scope), path


def test_signpost_asks_few_routes() -> None:
    (_, post), *_ = signposts(app().routes)
    near = post._near("/v1/runs/abc")  # pyright: ignore[reportPrivateUsage]
    assert 0 < len(near) < len(post.routes) / 10
