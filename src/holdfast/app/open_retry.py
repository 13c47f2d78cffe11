"""Waits for a store whose server is not available yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.errors import StoreBusyError, StoreError
from holdfast.telemetry import log
from holdfast.types.backoff import Backoff

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast

STORE_BACKOFF: Final = Backoff(first=0.5, longest=10.0)


def is_away(error: StoreError) -> bool:
    """Only what passes by itself is waited for: a wrong password or an old schema needs a person."""
    return isinstance(error, StoreBusyError) or bool(error.facts.get("away"))


async def open_with_retry(hf: Holdfast, *, on_error: Callable[[StoreError], None] | None = None) -> None:
    """Waits for a server that is not available yet, and logs it (R-44); errors that need a fix are raised.
    `on_error`: called with each failed attempt."""
    for pause in STORE_BACKOFF.pauses():
        try:
            await hf.open()
            return
        except StoreError as error:
            if not is_away(error):
                raise
            if on_error is not None:
                on_error(error)
            log.warning("not ready: the store does not answer yet, retrying in %.1f s: %s", pause, error)
        await asyncio.sleep(pause)
