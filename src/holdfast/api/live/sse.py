"""Server-sent events: the response that stays open, its frames, and where a client continues."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import Final

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Send

from holdfast.api.problems import HttpError
from holdfast.types.redaction import redactor

MEDIA: Final = "text/event-stream"
# Neither ends with an empty line: for several parsers an empty line ends a message, with or without data, and
# their callers would get an event that is none. Both take effect as soon as their line is read.
RETRY: Final = b"retry: 1000\n"
"""Milliseconds after which a browser reconnects. The first line of the first event."""
BEAT: Final = b": still here\n"
"""A comment: it keeps an idle connection open, and clients ignore it."""
OPENED: Final = "stream.opened"
"""The first event of a stream that begins now. Its id is where a client continues that is cut off before the
next one."""
MOST: Final = 0x7FFF_FFFF
"""The highest number of an event of a run."""
CHUNK: Final = 64 << 10
"""Bytes per write to a client that catches up."""
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


def event_frame(number: int | str, name: str, body: bytes) -> bytes:
    """One event of the stream. Encoded JSON contains no line break."""
    shown = redactor.redact_json(body)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(number).encode(), name.encode(), shown)


def chunks(frames: Iterable[bytes]) -> Iterable[bytes]:
    waiting: list[bytes] = []
    size = 0
    for frame in frames:
        waiting.append(frame)
        size += len(frame)
        if size >= CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def resume_position(request: Request, after: int, most: int = MOST) -> int:
    """Where to continue: the Last-Event-ID header, which is newer than the address; without it, `after`."""
    given = request.headers.get("last-event-id", "").strip()
    if not given:
        return after
    if not given.isascii() or not given.isdigit() or int(given[:18]) > most:
        raise not_of_stream("Last-Event-ID is not an id of this stream")
    return int(given)


def require_known_event(after: int, last: int) -> None:
    """Raises HttpError for a number that the run does not have yet, of another run or of a store that was
    restored since: everything up to it would be left out without a word."""
    if after > last:
        raise not_of_stream(f"the run has {last} events, and you ask for those after number {after}")


def not_of_stream(what: str) -> HttpError:
    return HttpError(
        422,
        f"{what}.",
        code="bad_last_event_id",
        hint="Send the id of the last event that you received, or leave it out to begin with the first.",
    )
