"""Requests from stdin that are not answered yet: the command waits for them before it ends."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

PATIENCE: Final = 5.0
"""Seconds that a request may still take after the end of stdin: opening a question may take that long."""
FAREWELL: Final = 2.0
"""The same for requests that were asked to stop waiting."""


class PendingRequests:
    """The ids of received requests, until they are answered or cancelled."""

    def __init__(self) -> None:
        self._open: dict[Any, int] = {}
        self._none = asyncio.Event()
        self._none.set()

    def add_request(self, line: bytes) -> None:
        try:
            request = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError:
            return
        if request.get("method") == "notifications/cancelled":
            params = request.get("params")
            self.remove_request(params.get("requestId") if isinstance(params, dict) else None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        elif "method" in request and isinstance(number := request.get("id"), (str, int)):
            self._open[number] = self._open.get(number, 0) + 1
            self._none.clear()

    def remove_request(self, number: Any) -> None:
        if not isinstance(number, (str, int)) or number not in self._open:
            return
        self._open[number] -= 1
        if not self._open[number]:
            del self._open[number]
        if not self._open:
            self._none.set()

    async def over(self, seconds: float) -> bool:
        """Whether all are answered within this many seconds."""
        try:
            await asyncio.wait_for(self._none.wait(), seconds)
        except TimeoutError:
            return False
        return True
