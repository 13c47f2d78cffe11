"""Refuses requests with two values where one is meant. A proxy and this server could each use another of two
Host or Authorization headers, and what one of them checked would not be what the other does."""

from __future__ import annotations

from collections import Counter
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api import problems
from holdfast.api.problems import HttpError
from holdfast.api.request_id import request_id

SINGLE: Final = frozenset({
    "authorization", "content-length", "content-type", "host", "idempotency-key", "last-event-id", "origin",
    "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-websocket-key", "transfer-encoding",
    "webhook-id", "webhook-signature", "webhook-timestamp", "x-csrf-token", "x-forwarded-proto",
    "x-request-id", "x-slack-request-timestamp", "x-slack-signature",
})  # fmt: skip
"""Headers that the server reads and that have one value."""
LISTS: Final = frozenset({
    "accept", "accept-encoding", "cookie", "if-match", "if-none-match", "x-forwarded-for",
})  # fmt: skip
"""Headers that the server reads and that may be repeated: each value is one more of a list."""


class HeaderGuard:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = _wrong(scope) if scope["type"] in ("http", "websocket") else None
        if error is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": error.message})
        else:
            await problems.problem_response(error, request_id(scope))(scope, receive, send)


def _wrong(scope: Scope) -> HttpError | None:
    counts = Counter(name.decode("latin-1") for name, _ in scope["headers"])
    repeated = sorted(name for name, count in counts.items() if count > 1 and name in SINGLE)
    if repeated:
        return _refusal(f"the request has the header {repeated[0]} more than once.", "Send it once.")
    # HTTP/1.1 requires it; without it the checks of the origin would have nothing to compare with.
    if "host" not in counts and scope.get("http_version") == "1.1":
        return _refusal("the request has no Host header.", "Send the name of this server as `Host`.")
    return None


def _refusal(message: str, hint: str) -> HttpError:
    return HttpError(400, message, code="bad_request", hint=hint)
