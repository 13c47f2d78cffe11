"""Masks known secrets of the caller's tenant in answers, whatever a route put into them. Files are left as
they are: exports and attachments have the values, and need their own rights. So is markup: pages and drawings
mask the values that they show (`pages.render`, `drawing.picture`)."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.types.redaction import NO_TENANT, current_tenant, redactor, tenant_scope

_TEXTS: Final = ("text/plain", "text/markdown")


class TenantScopes:
    """Middleware. Until a credential names the tenant, no secret of any tenant is masked: an answer must not
    depend on them. An answer that is a stream is inside as well."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            # The services that start with the application serve all tenants.
            await self.app(scope, receive, send)
            return
        with tenant_scope(NO_TENANT):
            await self.app(scope, receive, send)


class VerbatimResponse(Response):
    """A text that its author edits and sends back. A mask in it would become a part of it."""


def mask(response: Response) -> None:
    """In place. Streams mask each event themselves (`live.sse`)."""
    if isinstance(response, (StreamingResponse, VerbatimResponse)) or not hasattr(response, "body"):
        return
    kind = response.headers.get("content-type", "").partition(";")[0]
    if "content-disposition" in response.headers:
        return
    data = bytes(response.body)
    # Outside of the middleware, where it failed itself, there is no tenant either.
    with tenant_scope(current_tenant() or NO_TENANT):
        if kind.endswith("json"):
            hidden = redactor.redact_json(data)
        elif kind in _TEXTS:
            hidden = redactor.redact(data.decode()).encode()
        else:
            return
    if hidden != data:
        response.body = hidden
        response.headers["Content-Length"] = str(len(hidden))
