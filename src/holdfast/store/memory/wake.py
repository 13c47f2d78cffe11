"""Wakes those who wait for a change, whatever thread and event loop they wait on."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from holdfast.types.clock import SystemClock

if TYPE_CHECKING:
    from holdfast.types.clock import Clock

Loop = asyncio.AbstractEventLoop


class Bell:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._changes = 0
        self._waiting: set[asyncio.Future[None]] = set()
        # What a loop had heard when its last wait ended: a change between two waits is not missed.
        self._heard: WeakKeyDictionary[Loop, int] = WeakKeyDictionary()

    def ring(self) -> None:
        with self._lock:
            self._changes += 1
            waiting, self._waiting = self._waiting, set()
        for future in waiting:
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_finish, future)

    async def wait(self, timeout: float) -> bool:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            before = self._heard.setdefault(loop, self._changes)
            if before == self._changes:
                self._waiting.add(future)
        if before == self._changes:
            await self._sleep(future, timeout)
        with self._lock:
            self._waiting.discard(future)
            self._heard[loop] = self._changes
            return self._changes != before

    async def _sleep(self, future: asyncio.Future[None], timeout: float) -> None:
        """Until the bell, the timeout, or the same time on a clock that somebody moves by hand."""
        if isinstance(self._clock, SystemClock):
            await asyncio.wait({future}, timeout=timeout)
            return
        passing = asyncio.ensure_future(self._clock.sleep(timeout))
        try:
            await asyncio.wait({future, passing}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            passing.cancel()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
