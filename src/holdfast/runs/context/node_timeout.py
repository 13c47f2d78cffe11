"""The timeout of a node: how long its handler may take, without the time that people take to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.errors import NodeTimeoutError

T = TypeVar("T")


class PausedTimeout:
    """Entered once for each open question: the last answer starts the clock again."""

    def __init__(self) -> None:
        self.limit: asyncio.Timeout | None = None
        self._asking = 0
        self._left = 0.0

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.limit.expired()

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


async def call_in_time(
    call: Awaitable[T], node: str, micros: int, patience: PausedTimeout, close: Callable[[str], None]
) -> T:
    """The handler's result. Raises NodeTimeoutError, after its context was closed (`close`)."""
    limit = asyncio.timeout(micros / 1e6)
    try:
        async with limit:
            patience.limit = limit
            return await call
    except TimeoutError:
        if not limit.expired():
            raise
        close("its timeout passed")
        raise NodeTimeoutError(f"node {node!r} took longer than {micros / 1e6:g} s") from None
