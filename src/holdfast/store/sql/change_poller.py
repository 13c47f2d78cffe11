"""Polls a few numbers that grow with everything that could concern a worker, where a server does not notify
(D-11). What this process writes wakes its own workers at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable

from holdfast.store.change_signal import ChangeSignal
from holdfast.store.sql.connection import Row
from holdfast.types.clock import SystemClock


class ChangePoller:
    def __init__(self, poll: float, look: Callable[[], Awaitable[Row | None]]) -> None:
        self._poll_every = poll
        self._look = look
        self._changes = ChangeSignal(SystemClock())
        self._last: Row | None = None

    def notify(self) -> None:
        self._changes.notify()

    def mark_checked(self) -> None:
        """The current task is about to look for work: only later changes are new to it."""
        self._changes.mark_checked()

    async def wait(self, timeout: float) -> bool:
        """Whether something has changed; polls at least once."""
        deadline = time.monotonic() + timeout
        while True:
            await self._poll()
            left = deadline - time.monotonic()
            if await self._changes.wait(max(0.0, min(left, self._poll_every))):
                return True
            if left <= self._poll_every:
                return False

    async def _poll(self) -> None:
        # the next one may succeed; a caller that uses the store gets the error anyway
        with contextlib.suppress(Exception):
            seen = await self._look()
            if seen != self._last:
                first = self._last is None
                self._last = seen
                if not first:
                    self._changes.notify()
