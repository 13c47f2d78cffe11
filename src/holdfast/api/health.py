"""Answers before any route: liveness, readiness, and that the store is unavailable.

A server starts to listen before its store is open: a client gets the reason instead of a refused connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api import problems
from holdfast.api.problems import HttpError
from holdfast.api.request_id import request_id
from holdfast.api.route_index import path_in
from holdfast.errors import StoreError
from holdfast.runs.worker.health_server import PATIENCE
from holdfast.store.protocols import Store
from holdfast.telemetry import log

RETRY_SECONDS: Final = 2
"""Seconds after which a caller may retry while the store is unavailable."""


class ServerState:
    """The state of a server. `store`: once it is open; `wrong`: why it is not ready."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.wrong = "its store is not open yet"
        self.draining = False
        self.logged: list[str] = []

    async def missing(self) -> list[str]:
        """The reasons why it is not ready; empty if it is."""
        # First of all: a load balancer must stop sending requests although everything still works.
        if self.draining:
            return ["it is draining"]
        if self.store is None:
            return [self.wrong]
        try:
            async with asyncio.timeout(PATIENCE):
                # Reads the newest tables: without them the store has an older schema.
                await self.store.workers()
        except TimeoutError:
            return [f"the store did not answer within {PATIENCE:.0f} s"]
        except StoreError as error:
            return [f"the store does not answer: {error.message}"]
        return []


class ReadinessApp:
    """Wraps the application. Its lifespan is not used: the server opens the store. `may_know`: whether the
    caller may see why it is not ready; the reasons name hosts, so strangers get none."""

    def __init__(
        self,
        app: ASGIApp,
        standing: ServerState,
        may_know: Callable[[HTTPConnection], Awaitable[bool]] | None = None,
    ) -> None:
        self.app = app
        self.standing = standing
        self.may_know = may_know

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        answer = await self._own(scope)
        await (self.app if answer is None else answer)(scope, receive, send)

    async def _own(self, scope: Scope) -> Response | None:
        if scope["type"] != "http":
            return None
        # Without the store: restarting the process does not repair a database that is away.
        path = path_in(scope)
        if path == "/healthz":
            return _json_response(200, {"alive": True})
        if path == "/readyz":
            return await self._readiness(scope)
        # Static files need no store: an error page should have its style.
        if self.standing.store is None and not path.startswith("/static/"):
            return _unavailable(request_id(scope))
        return None

    async def _readiness(self, scope: Scope) -> Response:
        missing = await self.standing.missing()
        if not missing:
            self.standing.logged = []
            return _json_response(200, {"ready": True})
        # Once for each reason: a probe asks every few seconds.
        if missing != self.standing.logged:
            log.warning("not ready: %s", "; ".join(missing))
            self.standing.logged = missing
        shows = self.may_know is not None and await self.may_know(HTTPConnection(scope))
        return _json_response(503, {"ready": False, **({"missing": missing} if shows else {})})


def _json_response(status: int, value: object) -> Response:
    body = msgspec.json.encode(value) + b"\n"
    return Response(body, status, {"Cache-Control": "no-store"}, media_type="application/json")


def _unavailable(name: str) -> Response:
    error = HttpError(503, "this server is not ready yet.", code="not_ready", hint="Try again soon.")
    return problems.problem_response(
        error, name, headers={"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}
    )


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
