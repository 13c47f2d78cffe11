"""Threads for plain functions of users.

They are daemon threads and not those of the loop's executor, for three reasons: a function that never returns
does not keep the process from ending, it does not use up a place that other functions or the store need, and
it can be named when it was left behind.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final

from holdfast.telemetry import current_node, current_place, log

# At once, without those that are left behind: the rest waits for a free one.
LIMIT: Final = 64
IDLE: Final = 10.0  # seconds after which a thread without work ends


class ThreadCall:
    """A call in a thread. `left`: nobody waits for it any more, but it runs."""

    def __init__(self, work: Callable[[], Any], context: Context, future: asyncio.Future[Any]) -> None:
        self.work = work
        self.context = context
        self.future = future
        self.loop = future.get_loop()
        self.begun = False
        self.ended = False
        self.dropped = False
        self.returned = False
        # Of a call that was left behind: done when the function has returned.
        self.over: asyncio.Future[None] | None = None
        self.place = current_place()

    @property
    def where(self) -> str:
        return "a function" if self.place is None else f"node {self.place.node!r} of run {self.place.run}"

    def run(self) -> None:
        value, error = None, None
        try:
            value = self.context.run(self.work)
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self.loop.call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        self.returned = True
        if self.over is not None:
            self.over.set_result(None)
        if self.future.done():
            return
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class HandlerThreads:
    """Grows to `limit` threads, and beyond it by one for each that is left behind."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Without any thread: in the child of a fork those of its parent do not exist."""
        self._lock = threading.Lock()
        self._idle: list[_HandlerThread] = []
        self._waiting: deque[ThreadCall] = deque()
        self._running = 0
        self._left: set[ThreadCall] = set()

    @property
    def left_behind(self) -> list[ThreadCall]:
        """Calls whose caller was cancelled, and that still run."""
        with self._lock:
            return list(self._left)

    def start(self, call: ThreadCall) -> None:
        with self._lock:
            if self._running >= self._limit:
                self._waiting.append(call)
                return
            self._running += 1
            call.begun = True
            thread = self._idle.pop() if self._idle else _HandlerThread(self)
        thread.take(call)

    def leave(self, call: ThreadCall) -> bool:
        """Its caller does not wait any more. Whether it still runs."""
        with self._lock:
            call.dropped = True
            if not call.begun or call.ended or call in self._left:
                return False
            self._left.add(call)
            self._running -= 1
            following = self._next()
            thread = None
            if following is not None:
                thread = self._idle.pop() if self._idle else _HandlerThread(self)
        if thread is not None and following is not None:
            thread.take(following)
        return True

    def ended(self, thread: _HandlerThread, call: ThreadCall) -> ThreadCall | None:
        """The next call for this thread, if one waits."""
        with self._lock:
            call.ended = True
            if call in self._left:
                self._left.discard(call)
            else:
                self._running -= 1
            following = self._next()
            if following is None:
                self._idle.append(thread)
            return following

    def retire(self, thread: _HandlerThread) -> bool:
        """Whether it may end: no call was given to it meanwhile."""
        with self._lock:
            if thread not in self._idle:
                return False
            self._idle.remove(thread)
            return True

    def _next(self) -> ThreadCall | None:
        while self._waiting and self._running < self._limit:
            call = self._waiting.popleft()
            if not call.dropped:
                self._running += 1
                call.begun = True
                return call
        return None


class _HandlerThread:
    def __init__(self, pool: HandlerThreads) -> None:
        self._pool = pool
        self._given: ThreadCall | None = None
        self._ready = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def take(self, call: ThreadCall) -> None:
        self._given = call
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="holdfast-handler", daemon=True)
            self._thread.start()
        self._ready.release()

    def _serve(self) -> None:
        while True:
            if not self._ready.acquire(timeout=IDLE):
                if self._pool.retire(self):
                    return
                continue
            call, self._given = self._given, None
            while call is not None:
                call.run()
                call = self._pool.ended(self, call)


_threads = HandlerThreads()
os.register_at_fork(after_in_child=_threads.reset)


def threads_left_behind() -> list[ThreadCall]:
    return _threads.left_behind


async def run_in_thread(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a plain function, which runs in a thread with a copy of the context."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    context = copy_context()
    call = ThreadCall(partial(fn, *args, **kwargs), context, future)
    _threads.start(call)
    try:
        return await future
    except asyncio.CancelledError:
        if _threads.leave(call):
            log.warning("%s was stopped, but its thread runs until the function returns", call.where)
            # The thread may have ended although its pool does not know it yet.
            if not call.returned:
                call.over = asyncio.get_running_loop().create_future()
                leave_running(call.over)
        raise


def leave_running(call: asyncio.Future[Any]) -> None:
    """For the run whose code this is: nobody waits for it any more, and it runs until `call` is done."""
    at = current_node.get()
    if at is not None:
        at[0].leave_running(call)
