"""Server-sent events: a response that stays open."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Send

MEDIA: Final = "text/event-stream"
RETRY: Final = b"retry: 1000\n\n"
"""Milliseconds after which a browser reconnects."""
BEAT: Final = b": still here\n\n"
"""A comment: it keeps an idle connection open, and clients ignore it."""
HEADERS: Final = {
    "Cache-Control": "no-store, no-transform",
    # For nginx and similar proxies, which would buffer the stream.
    "X-Accel-Buffering": "no",
}


class EventStream(StreamingResponse):
    """Closes its source when it ends, in any way."""

    def __init__(self, source: AsyncGenerator[bytes]) -> None:
        super().__init__(source, media_type=MEDIA, headers=dict(HEADERS))
        self._source = source

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            # A client that disconnects leaves the generator
            # suspended; closing it leaves the hub's channel at once.
            await self._source.aclose()
