"""An event loop in a thread of its own: sync methods call async ones there, whatever loop the caller has."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Started with the first call. The caller of `run` waits in its own thread: no loop waits for itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._started())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._started()
        if self.is_current:
            work.close()
            raise RuntimeError("a sync method was called from the thread that serves sync methods.")
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    @property
    def is_started(self) -> bool:
        return self._loop is not None

    def close(self) -> None:
        """Blocks until the thread has ended."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="holdfast-saver", daemon=True
                )
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        # Connections of a loop are closed with its generators.
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
