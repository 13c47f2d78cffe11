"""An index of routes, so that a request is not matched against hundreds of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

_CHOSEN: Final = "holdfast.route"
_DEEPEST: Final = 12
"""Paths with more parts share one entry."""

Near = tuple[str | None, str | None, int]
"""The first two fixed parts of a path, and its number of parts."""


class RouteIndex(BaseRoute):
    """All routes in order, as one. Only routes with matching first parts and length are tried."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.routes = list(routes)
        self._parts = [_parts_of(route) for route in self.routes]
        self._words = {part for parts in self._parts for part in parts[:2] if not _is_open(part)}
        self._known: dict[Near, list[BaseRoute]] = {}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        partial: tuple[Match, Scope] | None = None
        for route in self._near(path_in(scope)):
            match, child = route.matches(scope)
            if match is Match.FULL:
                return match, {**child, _CHOSEN: route}
            if match is Match.PARTIAL and partial is None:
                partial = match, {**child, _CHOSEN: route}
        return partial or (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope[_CHOSEN].handle(scope, receive, send)

    def _near(self, path: str) -> list[BaseRoute]:
        parts = path.split("/")[1:]
        first, second = (part if part in self._words else None for part in (*parts, "", "")[:2])
        near: Near = (first, second, min(len(parts), _DEEPEST))
        found = self._known.get(near)
        if found is None:
            found = [r for r, own in zip(self.routes, self._parts, strict=True) if _may_match(own, near)]
            self._known[near] = found
        return found


def _parts_of(route: BaseRoute) -> list[str]:
    return str(getattr(route, "path", "/{any:path}")).split("/")[1:]


def _is_open(part: str) -> bool:
    return "{" in part


def _may_match(parts: list[str], near: Near) -> bool:
    *words, length = near
    fits = all(_is_open(own) or own == word for own, word in zip(parts, words, strict=False))
    endless = any(part.endswith(":path}") for part in parts)
    return fits and (len(parts) == length or endless or length == _DEEPEST)


def path_in(scope: Scope) -> str:
    """The path below the root path."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path
