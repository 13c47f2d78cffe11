"""The id of each request: in the header of every answer, in every problem, and in the log."""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.types.ids import new_id

HEADER: Final = "x-request-id"
_KEY: Final = "holdfast.request_id"
_STARTS: Final = ("http.response.start", "websocket.http.response.start")
# The caller's id goes into logs and headers: other characters could forge log lines or add headers.
_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


class RequestIds:
    """Middleware. Outside of all others, so that no answer is without the header."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Already there: two servers of ours around each other.
        if scope["type"] not in ("http", "websocket") or _KEY in scope:
            await self.app(scope, receive, send)
            return
        name = request_id(scope)
        header = (HEADER.encode(), name.encode())

        async def named(message: Message) -> None:
            if message["type"] in _STARTS and all(key.lower() != header[0] for key, _ in message["headers"]):
                message = {**message, "headers": [*message["headers"], header]}
            await send(message)

        await self.app(scope, receive, named)


def request_id(scope: Any) -> str:
    """The caller's id if it is well-formed, else a new one; the same for the whole request."""
    known = scope.get(_KEY)
    if known is None:
        given = Headers(scope=scope).get(HEADER, "")
        known = scope[_KEY] = given if _WELL_FORMED.match(given) else new_id()
    return known
