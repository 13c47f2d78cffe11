"""Wakes callers that wait for a change, in any thread and event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from holdfast.types.clock import SystemClock

if TYPE_CHECKING:
    from holdfast.types.clock import Clock

Loop = asyncio.AbstractEventLoop
Task = asyncio.Task[Any]


class ChangeSignal:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._changes = 0
        self._waiting: set[asyncio.Future[None]] = set()
        # The last change that a task had seen when it last looked for work, and a loop when its last wait
        # ended (each wait may use a new task): a change between looking and waiting is not missed.
        self._heard: WeakKeyDictionary[Task | Loop, int] = WeakKeyDictionary()

    def notify(self) -> None:
        with self._lock:
            self._changes += 1
            waiting, self._waiting = self._waiting, set()
        for future in waiting:
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_finish, future)

    @property
    def count(self) -> int:
        """How many changes there were."""
        return self._changes

    async def wait_beyond(self, seen: int, timeout: float) -> None:
        """Until `count` is not `seen`, or until the timeout."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            waits = self._changes == seen
            if waits:
                self._waiting.add(future)
        if waits:
            try:
                await self._sleep(future, timeout)
            finally:
                with self._lock:
                    self._waiting.discard(future)

    def mark_checked(self) -> None:
        """The current task is about to look for work: only later changes are new to it."""
        task = asyncio.current_task()
        if task is not None:
            with self._lock:
                self._heard[task] = self._changes

    async def wait(self, timeout: float) -> bool:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            before = self._heard.setdefault(loop, self._changes)
            if task is not None:
                before = self._heard.get(task, before)
            waits = before == self._changes
            if waits:
                self._waiting.add(future)
        if waits:
            await self._sleep(future, timeout)
        with self._lock:
            self._waiting.discard(future)
            self._heard[loop] = self._changes
            if task is not None:
                self._heard[task] = self._changes
            return self._changes != before

    async def _sleep(self, future: asyncio.Future[None], timeout: float) -> None:
        """Until a change, the timeout, or the same time on a clock that a test advances."""
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
