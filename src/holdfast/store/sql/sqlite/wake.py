"""Waking workers: at once after a write of this process, by polling after one of another (D-11)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

POLL_EVERY = 0.05  # seconds


class SqliteChangeSignal:
    """`version` is SQLite's data_version on the writing connection: it changes when others commit."""

    def __init__(self, version: Callable[[], int | None]) -> None:
        self._version = version
        self._last = version()
        self._generation = 0
        self._lock = threading.Lock()
        self._waiters: set[asyncio.Future[None]] = set()
        self._seen: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()

    def notify(self) -> None:
        """Something changed that could concern a worker. May be called from any thread."""
        with self._lock:
            self._generation += 1
            waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    def mark_checked(self) -> None:
        """This task is about to look for work: only later changes are new to it."""
        task = asyncio.current_task()
        if task is not None:
            self._seen[task] = self._generation

    async def wait(self, timeout: float) -> bool:
        """True as soon as something has changed since this task last looked."""
        task = asyncio.current_task()
        seen = self._generation if task is None else self._seen.get(task, self._generation)
        deadline = time.monotonic() + timeout
        while True:
            self._poll()
            if self._generation != seen:
                self.mark_checked()
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            await self._pause(min(left, POLL_EVERY))

    async def _pause(self, seconds: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiters.add(waiter)
        try:
            await asyncio.wait((waiter,), timeout=seconds)
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    def _poll(self) -> None:
        version = self._version()
        if version is not None and version != self._last:
            self._last = version
            self.notify()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
