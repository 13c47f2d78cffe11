"""Calls of the store, repeated while it is unavailable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from holdfast.errors import StoreError
from holdfast.types.backoff import Backoff

T = TypeVar("T")
_PAUSES: Final = Backoff(first=0.1, longest=5.0)


async def while_unavailable(call: Callable[[], Awaitable[T]]) -> T:
    """Without an end: an activity that waits for the store is alive, and its run waits with it."""
    pauses = _PAUSES.pauses()
    while True:
        try:
            return await call()
        except StoreError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(next(pauses))
