"""The server's time, as this process estimates it between two requests to the server (D-33)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from holdfast.types.clock import Clock

_UNKNOWN: Final = 1 << 60
_DRIFT: Final = 1000
"""Two clocks may drift apart by one part in this many: a millisecond in a second is more than any real clock
does."""


class ServerClock:
    """The local clock's setting does not matter: leases are compared by the server itself, and everything
    else only needs all processes to agree approximately."""

    def __init__(self, given: Clock | None) -> None:
        self._given = given
        self._offset = time.time_ns() // 1000 - _monotonic()
        # The largest possible error, and since when it is valid. At first no server was asked.
        self._error = _UNKNOWN
        self._since = _monotonic()

    @property
    def given(self) -> int | None:
        """The argument of `@now(?)`: the time of an injected clock, or None for the server's own."""
        return None if self._given is None else self._given.now()

    def now(self) -> int:
        if self._given is not None:
            return self._given.now()
        return _monotonic() + self._offset

    def asking(self) -> Callable[[int], None]:
        """Call it before asking the server for its time; call the result with the server's answer."""
        began = _monotonic()

        def heard(server: int) -> None:
            self._hear(server, began, _monotonic())

        return heard

    def _hear(self, server: int, began: int, ended: int) -> None:
        """An answer that took long (a slow network, a stopped process) may be wrong by half of that time: an
        earlier quick one is preferred, unless both cannot be true."""
        error, offset = (ended - began) // 2, server - (began + ended) // 2
        known = self._error + (ended - self._since) // _DRIFT
        if error <= known or abs(offset - self._offset) > error + known:
            self._offset, self._error, self._since = offset, error, ended


def _monotonic() -> int:
    return time.monotonic_ns() // 1000
