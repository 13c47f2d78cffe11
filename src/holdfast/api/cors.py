"""Cross-origin requests (CORS): pages of other origins may call us only if they are listed, and never with a
cookie."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_HEADERS = (
    "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match",
    "Last-Event-ID", "X-Request-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name",
)  # fmt: skip
_EXPOSED = ("ETag", "Location", "Retry-After", "X-Request-Id", "Content-Disposition")


def cors(origins: Sequence[str]) -> list[Middleware]:
    """Empty if no origin is listed: then browsers keep other pages from reading our answers."""
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=list(_METHODS),
            allow_headers=list(_HEADERS),
            expose_headers=list(_EXPOSED),
            max_age=600,
        )
    ]
