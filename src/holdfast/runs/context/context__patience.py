"""The timeout of a node, which does not run while a person thinks: a parked node has none either."""

from __future__ import annotations

import asyncio


class Patience:
    """Entered once for each question that is open: of several, the last answer starts the clock again."""

    def __init__(self) -> None:
        self.limit: asyncio.Timeout | None = None
        self._asking = 0
        self._left = 0.0

    def __enter__(self) -> None:
        self._asking += 1
        if self.limit is not None and self._asking == 1:
            clock = asyncio.get_running_loop().time()
            self._left = (self.limit.when() or clock) - clock
            self.limit.reschedule(None)

    def __exit__(self, *_exc: object) -> None:
        self._asking -= 1
        if self.limit is not None and self._asking == 0 and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self._left)
