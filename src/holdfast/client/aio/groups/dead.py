"""`client.dead`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.requests import request_of


class AsyncDead(AsyncGroup):
    async def discard(
        self, run: str, *, reason: str | None = None, unread: bool | None = None
    ) -> models.RunDetail:
        """Discard it: the next worker that serves its flow ends it as cancelled.

        With `unread` it ends at once, without being loaded: for a run whose flow no worker serves any
        more."""
        request = request_of(
            "POST", "/v1/dead/{run}/discard", {"run": run}, maybe={"reason": reason, "unread": unread}
        )
        return await self._json(request, models.RunDetail)

    async def get(self, run: str) -> models.DeadRun:
        """Every death of a worker that had this run, with the nodes that were under way."""
        request = request_of("GET", "/v1/dead/{run}", {"run": run})
        return await self._json(request, models.DeadRun)

    async def list(self, *, limit: int | None = None) -> Listing[models.Run]:
        """Dead letters: runs that were given up because their workers kept dying, newest first."""
        request = request_of("GET", "/v1/dead", query={"limit": limit})
        return await self._list(request, models.Run)

    async def retry(self, run: str) -> models.RunDetail:
        """Retry it once the cause is fixed: any worker may resume it."""
        request = request_of("POST", "/v1/dead/{run}/retry", {"run": run})
        return await self._json(request, models.RunDetail)
