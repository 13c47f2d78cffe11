"""Group commit: calls that are made while one is under way are sent together, as the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Any, Final, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from holdfast.errors import StoreBusyError, StoreFullError, StoreUnavailableError

Q = TypeVar("Q")
A = TypeVar("A")

_MOST: Final = 256
"""Calls in a group."""
_MOST_BYTES: Final = 4 << 20
"""What the calls of a group send, beside the first: a large value does not delay many others."""


class _Call(NamedTuple, Generic[Q, A]):
    given: Q
    answer: asyncio.Future[A]


class CallGroup(Generic[Q, A]):
    """One for each method of a store. Each event loop has groups of its own, as it has connections.

    `send` is one transaction for all that it is given. If it fails because of one of them, each is sent
    alone, so that a call gets only errors of its own. A caller that is cancelled leaves its call in the
    group: what was sent is completed."""

    def __init__(
        self, send: Callable[[Sequence[Q]], Awaitable[Sequence[A]]], size: Callable[[Q], int] = lambda _: 0
    ) -> None:
        """`size`: the bytes of a call."""
        self._send, self._size = send, size
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Call[Q, A]]] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(self, given: Q) -> A:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        waiting = self._waiting.get(loop)
        if waiting is not None:
            waiting.append(_Call(given, answer))
            return await answer
        self._waiting[loop] = [_Call(given, answer)]
        task = loop.create_task(self._serve(loop), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await answer

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        # The task starts one turn of the loop after the first call: calls made together are in its group.
        waiting, calls = self._waiting[loop], list[_Call[Q, A]]()
        try:
            while waiting:
                count = self._count(waiting)
                calls, waiting[:count] = waiting[:count], []
                await self._sent(calls)
        finally:
            del self._waiting[loop]
            for call in (*calls, *waiting):  # the loop is being closed
                if not call.answer.done():
                    call.answer.cancel()

    def _count(self, waiting: Sequence[_Call[Q, A]]) -> int:
        """How many of them are the next group."""
        size = 0
        for count, call in enumerate(waiting[:_MOST]):
            size += self._size(call.given)
            if count and size > _MOST_BYTES:
                return count
        return min(len(waiting), _MOST)

    async def _sent(self, calls: Sequence[_Call[Q, A]]) -> None:
        try:
            answers = await self._send([call.given for call in calls])
        except Exception as error:
            if len(calls) == 1 or _is_of_all(error):
                for call in calls:
                    if not call.answer.done():
                        call.answer.set_exception(error)
                return
            for call in calls:
                await self._sent([call])
            return
        for call, answer in zip(calls, answers, strict=True):
            if not call.answer.done():
                call.answer.set_result(answer)


def _is_of_all(error: BaseException) -> bool:
    """The fault of no single call: each alone would fail in the same way, after the same wait; and after a
    lost connection only the caller knows whether it may repeat. The driver's errors about a value that it
    cannot send are translated in the same way as those of a lost connection."""
    unsent: Any = error.__cause__
    return isinstance(error, (StoreUnavailableError, StoreBusyError, StoreFullError)) and not isinstance(
        unsent, ValueError
    )
