"""Making a write again while the store is away: how often, and how loud."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

import msgspec

from holdfast.errors import HoldfastError, StoreError, StoreFullError
from holdfast.telemetry import log

RETRY_DELAYS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

T = TypeVar("T")


class Trouble(msgspec.Struct, frozen=True):
    """The store does not take checkpoints: why, and since when on the monotonic clock."""

    error: StoreError
    since: float


class Insistence:
    def __init__(self) -> None:
        self.make_room: Callable[[], Awaitable[object]] | None = None
        # What keeps checkpoints from being written at this moment; readiness tells it.
        self.trouble: Trouble | None = None

    async def insist(self, write: Callable[[], Awaitable[T]], *, settling: bool = True) -> T:
        """Settling and putting blobs are idempotent, so a failed call is simply made again (D-8). Where the
        store has been away for long already, once in a while."""
        cleaned = False
        delays = RETRY_DELAYS
        if settling and self.trouble is not None:
            delays = ()
            await asyncio.sleep(RETRY_DELAYS[-1] if RETRY_DELAYS else 0)
        for pause in (*delays, None):
            try:
                done = await write()
            except StoreError as error:
                if not error.retryable:
                    raise
                self.note_trouble(error, settling=settling)
                if pause is None:
                    raise
                if isinstance(error, StoreFullError) and not cleaned:
                    cleaned = True
                    await self._make_room()
                else:
                    await asyncio.sleep(pause)
            else:
                return done
        raise AssertionError("unreachable")

    def note_trouble(self, error: StoreError, *, settling: bool) -> None:
        """One line for each outage of the store, whatever number of runs it holds up."""
        if settling and self.trouble is not None:
            self.trouble = Trouble(error, self.trouble.since)
            return
        log.warning("checkpoint not written, trying again: %s", error)
        if settling:
            self.trouble = Trouble(error, monotonic())

    def note_end_of_trouble(self) -> None:
        if self.trouble is not None:
            log.warning("the store takes checkpoints again, after %.1f s", monotonic() - self.trouble.since)
            self.trouble = None

    async def _make_room(self) -> None:
        """A full store is cleaned of what retention would take anyway, once (R-42)."""
        if self.make_room is None:
            return
        try:
            await self.make_room()
        except HoldfastError as error:
            log.warning("the full store could not be cleaned: %s", error)
