"""Live events: a stream that reconnects by itself, misses nothing and repeats nothing."""

# Written by tools/client.py from src/holdfast/client/aio/streams.py. Do not change it here.

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from holdfast.client.frames import EventParser, StreamEvent, resume_request
from holdfast.client.library import library, unreachable_error
from holdfast.client.requests import Request
from holdfast.client.retries import is_transient, requested_wait
from holdfast.client.sync.transport import Transport
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    import httpx2

SILENCE = 45.0
"""Seconds without any data; the server sends something every 15."""
SOON = 1.0


class EventStream:
    """`for event in stream`, until there are no more events. After a broken connection or a restart of
    the server it continues from the last event's id. Close it, or use `with`, if you stop before its
    end."""

    def __init__(self, transport: Transport, request: Request) -> None:
        self.last = ""
        self._transport = transport
        self._request = request
        self._frames = EventParser()
        self._pending: deque[StreamEvent] = deque()
        self._response: httpx2.Response | None = None
        self._bytes: Iterator[bytes] | None = None
        self._silent_since: float | None = None
        self._attempt = 0
        self._empty = True
        self._over = False

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> StreamEvent:
        while not self._pending:
            if self._over:
                raise StopIteration
            try:
                self._read_on()
            except HoldfastError as error:
                self._drop()
                self._pause(error)
        event = self._pending.popleft()
        self.last = event.id
        return event

    def _read_on(self) -> None:
        """The next bytes, over a new connection if there is none. Raises HoldfastError."""
        if self._bytes is None:
            self._connect()
            return
        try:
            chunk = next(self._bytes)
        except StopIteration:
            self._drop()
            self._ask_again()
            return
        except library().RequestError as error:
            raise unreachable_error(error, self._transport.settings, self._request.name) from None
        found = self._frames.feed(chunk)
        self._pending.extend(found)
        self._empty = self._empty and not found
        self._attempt, self._silent_since = 0, None

    def _ask_again(self) -> None:
        """The stream ended normally. After a run's last event the next request is answered with 204. After an
        empty stream the client waits before it reconnects."""
        if self._empty:
            sleep(self._frames.retry or SOON)

    def _connect(self) -> None:
        request = resume_request(self._request, self._frames.last)
        response = self._transport.open(request, silence=SILENCE)
        if response.status_code == 204:
            self._over = True
            response.close()
            return
        self._response, self._bytes, self._empty = response, response.iter_bytes(), True

    def _pause(self, error: HoldfastError) -> None:
        """Raises the error if waiting does not help, or has taken too long."""
        settings = self._transport.settings
        self._silent_since = self._silent_since or monotonic()
        if not is_transient(error) or monotonic() - self._silent_since > settings.patience:
            raise error
        self._attempt += 1
        wait = settings.retries.wait(self._attempt, requested_wait(error))
        sleep(min(wait, max(self._frames.retry or SOON, settings.retries.longest)))

    def _drop(self) -> None:
        response, self._response, self._bytes = self._response, None, None
        self._frames.forget()
        if response is not None:
            response.close()

    def close(self) -> None:
        self._over = True
        self._pending.clear()
        self._drop()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
