"""What is known of effects whose records could not be written: told as soon as the store is back (D-17)."""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.errors import StoreError, StoreMovedError
from holdfast.runs.driver import late_evidence__evidence
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.ids import RunId

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0

Known = list[tuple[int, bytes]]
"""(seq of the intent, how the effect ended)"""


class Testimonies:
    """Kept in memory: a run that stops because the store is away for long leaves effects that happened, and
    whoever goes on with it would have to ask a person about each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[RunId, Known] = {}
        self._telling: asyncio.Task[None] | None = None

    def keep(self, run: RunId, known: Known) -> None:
        if not known:
            return
        self._kept.setdefault(run, []).extend(known)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell_all())

    async def tell(self, run: RunId) -> None:
        """Raises StoreError where it cannot be told yet."""
        while known := self._kept.get(run):
            intent, told = known[0]
            await late_evidence__evidence.report(self._store, run, intent, told)
            if known and known[0][0] == intent:
                known.pop(0)
        self._kept.pop(run, None)

    async def _tell_all(self) -> None:
        pause = FIRST_PAUSE
        while run := next(iter(self._kept), None):
            try:
                await self.tell(run)
            except StoreMovedError as error:
                log.warning("how effects ended cannot be told here any more: %s", error)
                self._kept.clear()
            except StoreError as error:
                if error.retryable:
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
                else:
                    # For want of a key, say: the others do not wait for that.
                    self._kept.pop(run, None)
                    _untold(run, error)

    async def close(self) -> None:
        """Once more, in case the store is back; what cannot be told is asked of a person (D-15)."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        for run in list(self._kept):
            try:
                await self.tell(run)
            except StoreError as error:
                _untold(run, error)


def _untold(run: RunId, error: StoreError) -> None:
    said = "run %s: how its effects ended could not be told: %s"
    log.warning(said, run, error, extra={"run": run})
