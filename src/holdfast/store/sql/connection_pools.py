"""The connections of a store on a server: one pool for each event loop that uses it."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

TRIES = 5


class ServerPools(ABC):
    """What a call goes through, whatever the dialect: it is completed although its caller is cancelled, and
    the connections of a loop are closed with it."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout  # seconds
        self._lock = threading.Lock()
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._kept: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None]] = WeakKeyDictionary()
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    @abstractmethod
    async def read(self, query: Callable[[Any], Awaitable[T]]) -> T:
        """One statement, or several that need not see the same moment. A lost connection is replaced."""

    @abstractmethod
    async def read_together(self, query: Callable[[Any], Awaitable[T]]) -> T:
        """Several statements that see the same moment."""

    async def _finish(self, call: Coroutine[Any, Any, T]) -> T:
        """The caller may be cancelled; what was sent is completed, as in any other store. In an empty
        context: timers and sockets keep the context they were created in, and with it a whole run."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        task = loop.create_task(_answer(answer, call), context=Context())
        self._running.add(task)
        task.add_done_callback(partial(self._done, answer, call))
        return await answer

    def _done(
        self, answer: asyncio.Future[Any], call: Coroutine[Any, Any, Any], task: asyncio.Task[None]
    ) -> None:
        self._running.discard(task)
        if not answer.done():  # the task was cancelled before its first step
            answer.cancel()
            call.close()

    async def close(self) -> None:
        self._closed = True
        with self._lock:
            pools = list(self._pools.items())
            self._pools.clear()
        here = asyncio.get_running_loop()
        running = [task for task in self._running if task.get_loop() is here]
        if running:
            await asyncio.wait(running, timeout=self._timeout)
        for loop, pool in pools:
            kept = self._kept.pop(loop, None)
            if loop is here:
                if kept is not None:
                    await kept.aclose()
            elif not loop.is_closed():
                loop.call_soon_threadsafe(self._terminate_pool, pool)

    async def _keep(self, loop: asyncio.AbstractEventLoop, close: Callable[[], Awaitable[None]]) -> None:
        """`close` is called with the end of that loop, unless this is closed before."""
        self._kept[loop] = _close_with_loop(close)
        await anext(self._kept[loop])

    def abandon(self) -> None:
        """In a forked child: the connections belong to the parent."""
        self._closed = True
        _inherited.append(self._pools)
        self._pools = WeakKeyDictionary()

    @abstractmethod
    def _terminate_pool(self, pool: Any) -> None:
        """Without a word to the server."""


async def _answer(answer: asyncio.Future[T], call: Coroutine[Any, Any, T]) -> None:
    """As `shield`, with which the caller would continue a turn of the loop later."""
    try:
        result = await call
    except BaseException as error:
        if not answer.done():
            answer.set_exception(error)
            answer.exception()  # never reported as unread: its caller may be cancelled before it reads it
        if not isinstance(error, Exception):
            raise
    else:
        if not answer.done():  # its caller was cancelled otherwise
            answer.set_result(result)


async def _close_with_loop(close: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """`asyncio.run` closes async generators that are left."""
    try:
        yield
    finally:
        await close()


_inherited: list[Any] = []  # never finalised: closing a connection would end the parent's
