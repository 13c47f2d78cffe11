"""The sweep that forgets: ended runs are kept as their flow says, and blobs until nobody names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.runs import retention, retention__collecting
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.runs.retention import Cleaned
from holdfast.telemetry import log
from holdfast.types.retention import Retention

if TYPE_CHECKING:
    from holdfast.runs.service import RunService

EVERY = 3600.0
FIRST = 60.0


class Keeper:
    """Applies the retention of the flows that its process carries; `retention` overrides them all.

    Any number of workers may do this at once: each run is pruned in one transaction that looks again
    whether it has ended and whether somebody else was there before.
    """

    def __init__(
        self, service: RunService, *, retention: Retention | None = None, every: float = EVERY
    ) -> None:
        self.service = service
        self.retention = retention
        self.every = every
        # When the last sweep began; what has not changed since then was looked after.
        self._swept: int | None = None

    async def sweep(self) -> Cleaned:
        began = self.service.store.now()
        total = await retention.make_room(self.service, self.retention, self._swept)
        self._swept = began
        total.feed = await retention__collecting.trim_feed(self.service, self.service.runtime.settings.feed_kept)
        await retention__collecting.collect_blobs(self.service)
        if self.service.runtime.settings.reencrypt:
            await reencrypt(self.service)
        if total.runs or total.records:
            log.info("retention: %d runs and %d records of others went", total.runs, total.records)
        return total

    async def serve(self) -> None:
        """Until cancelled. The first sweep comes after a while: a worker that starts has more to do."""
        clock = self.service.runtime.clock
        pause = min(self.every, FIRST)
        while True:
            await clock.sleep(pause)
            pause = self.every
            try:
                await self.sweep()
            except HoldfastError as error:
                log.warning("retention could not be applied, trying again later: %s", error)
