"""Parses server-sent events by the rules of the HTML standard."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.client.problems import AnswerUnreadableError
from holdfast.client.requests import Request

OPENED = "stream.opened"


class StreamEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: its number in the stream; `data`: its content."""

    id: str
    type: str
    data: dict[str, Any]

    @property
    def number(self) -> int:
        return int(self.id)


def resume_request(request: Request, last: str) -> Request:
    """The request for events after `last`. The id is in the address too, because some proxies remove the
    header, and then all events would be sent again, forever."""
    headers = {**request.headers, "Accept": "text/event-stream"}
    if not last:
        return msgspec.structs.replace(request, headers=headers)
    query = [(name, value) for name, value in request.query if name not in ("after", "after_sequence")]
    return msgspec.structs.replace(
        request, headers={**headers, "Last-Event-ID": last}, query=[*query, ("after", last)]
    )


class EventParser:
    """Takes bytes as they arrive and returns complete events. `last`: the id to continue from."""

    def __init__(self, last: str = "") -> None:
        self.last = last
        self.retry: float | None = None
        self._id = last
        self._rest = b""
        self._type = ""
        self._data: list[bytes] = []

    def forget(self) -> None:
        """Drop an incomplete event: it is sent again after the reconnect."""
        self._id, self._rest, self._type, self._data = self.last, b"", "", []

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        lines = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        self._rest = lines.pop()
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: bytes) -> StreamEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"id" and b"\0" not in value:
            self._id = value.decode()
        elif field == b"event":
            self._type = value.decode()
        elif field == b"data":
            self._data.append(value)
        elif field == b"retry" and value.isdigit():
            self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> StreamEvent | None:
        self.last = self._id
        kind, data = self._type or "message", b"\n".join(self._data)
        self._type, self._data = "", []
        # The place where a stream begins: for the next request, not for the caller.
        if not data or kind == OPENED:
            return None
        try:
            return StreamEvent(id=self.last, type=kind, data=msgspec.json.decode(data, type=dict[str, Any]))
        except msgspec.DecodeError as error:
            raise AnswerUnreadableError(
                f"event {self.last or '?'} of the stream is not JSON: {error}."
            ) from error
