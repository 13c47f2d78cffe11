"""Tasks in which user code runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


class OwnedTask(asyncio.Task[T]):
    """Distinguishes its two cancellations: `stop` is its owner's, `cancel` the code's own."""

    def __init__(
        self,
        work: Coroutine[Any, Any, T],
        *,
        loop: asyncio.AbstractEventLoop,
        context: Context | None = None,
    ) -> None:
        # Its owner wants it to end.
        self.stopped = False
        # Its owner does not wait for it any more: whatever it does is ignored.
        self.disowned = False
        # Called whenever it is cancelled, by whomever.
        self.on_cancel: Callable[[], None] | None = None
        super().__init__(work, loop=loop, context=context)

    def stop(self) -> bool:
        self.stopped = True
        return self.cancel()

    def cancel(self, msg: Any | None = None) -> bool:
        if self.on_cancel is not None:
            self.on_cancel()
        return super().cancel(msg)

    def uncancel(self) -> int:
        left = super().uncancel()
        if left == 0:
            self.stopped = False
        return left
