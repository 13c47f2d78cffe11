"""The server's time, as this process reckons it between two looks at the server (D-33)."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.types.clock import Clock


class ServerClock:
    """Whose clock does not matter then: leases are compared by the server itself, and the rest needs only
    that all processes nearly agree."""

    def __init__(self, given: Clock | None) -> None:
        self._given = given
        self._offset = time.time_ns() // 1000 - time.monotonic_ns() // 1000

    @property
    def given(self) -> int | None:
        """What statements are told: the time of an injected clock, or None for the server's own."""
        return None if self._given is None else self._given.now()

    def now(self) -> int:
        if self._given is not None:
            return self._given.now()
        return time.monotonic_ns() // 1000 + self._offset

    def asking(self) -> Callable[[int], None]:
        """Call it before asking the server for its time, and the answer with what it said."""
        began = time.monotonic_ns() // 1000

        def heard(server: int) -> None:
            self._offset = server - (began + time.monotonic_ns() // 1000) // 2

        return heard
