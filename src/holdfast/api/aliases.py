"""Other paths of the same routes, rewritten before a route is chosen.

Every route is declared once, under `/v1`. The documents that Holdfast follows name some of them without a
version or under `/v2`, and a checkpoint also under the prefixes of its proxy and its module. Those paths are
not in the OpenAPI document and not in the generated clients.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.auth.rights import Right
from holdfast.api.route_index import RouteIndex

ALIAS: Final = "holdfast.alias"
"""The key of the `Alias` in the scope of a rewritten request."""
ROOT: Final = "/api"
"""The same routes answer below it."""


class Alias(NamedTuple):
    """`needs`: the right that is required in place of the route's own (PE-1). `runtime`: a path of the
    runtime document, whose sample for browsers sends no CSRF token."""

    prefix: str
    target: str
    needs: Right | None = None
    runtime: bool = False


ALIASES: Final = (
    Alias("/v2/runs", "/v1/runs", runtime=True),
    Alias("/v2/threads", "/v1/threads", runtime=True),
    Alias("/runs", "/v1/runs", runtime=True),
    Alias("/threads", "/v1/threads", runtime=True),
    Alias("/pipelines", "/v1/pipelines"),
    Alias("/checkpoints", "/v1/checkpoints"),
    # The proxy forwards to the module in the same process: status, body, request id, idempotency key and
    # caller are those of the request (PE-2), and there is no upstream that could time out.
    Alias("/v1/scaicore/checkpoints", "/v1/checkpoints", Right.manage),
    Alias("/v1/modules/scaicore/checkpoints", "/v1/checkpoints", Right.resolve),
)


class AliasPaths:
    """ASGI middleware. A path that is also a page is not rewritten if the caller asks for the page."""

    def __init__(self, app: ASGIApp, pages: RouteIndex) -> None:
        self.app = app
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            scope = self._rewritten(scope)
        await self.app(scope, receive, send)

    def _rewritten(self, scope: Scope) -> Scope:
        root, path = _split(scope)
        alias = alias_of(path)
        if alias is None or self._is_page(scope):
            return scope
        changed = {**scope, "path": f"{root}{alias.target}{path[len(alias.prefix) :]}", ALIAS: alias}
        raw: bytes | None = scope.get("raw_path")
        if raw is not None:
            # The prefixes need no escaping, so they have the same length in both forms.
            start = root.encode()
            changed["raw_path"] = start + alias.target.encode() + raw[len(start) + len(alias.prefix) :]
        return changed

    def _is_page(self, scope: Scope) -> bool:
        return scope["type"] == "http" and self.pages.matches(scope)[0] is not Match.NONE


def alias_of(path: str) -> Alias | None:
    for alias in ALIASES:
        # With the slash: `/runsheet` is not below `/runs`.
        if path == alias.prefix or path.startswith(f"{alias.prefix}/"):
            return alias
    return None


def alias_in(scope: Any) -> Alias | None:
    """The alias of a request; None: it used the route's own path."""
    return scope.get(ALIAS)


def _split(scope: Scope) -> tuple[str, str]:
    """(the root path of the server, the path below it)."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    mounted = root if root and path.startswith(f"{root}/") else ""
    if path.startswith(f"{mounted}{ROOT}/"):
        mounted += ROOT
    return mounted, path[len(mounted) :]
