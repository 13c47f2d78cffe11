"""Server-sent events: a response that stays open."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Send

MEDIA: Final = "text/event-stream"
RETRY: Final = b"retry: 1000\n\n"
"""A browser that lost us comes back after this many milliseconds."""
BEAT: Final = b": still here\n\n"
"""A comment: it keeps the connection open where nothing happens, and clients ignore it."""
HEADERS: Final = {
    "Cache-Control": "no-store, no-transform",
    # Said to nginx and its kin, which would else gather what they should pass on.
    "X-Accel-Buffering": "no",
}


class EventStream(StreamingResponse):
    """Its source is closed with it, however it ends."""

    def __init__(self, source: AsyncGenerator[bytes]) -> None:
        super().__init__(source, media_type=MEDIA, headers=dict(HEADERS))
        self._source = source

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            await self._source.aclose()
