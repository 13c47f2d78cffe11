"""`client.limits`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.requests import request_of


class AsyncLimits(AsyncGroup):
    async def clear(self, name: str) -> None:
        """What the flow declares holds again."""
        request = request_of("DELETE", "/v1/limits/{name}", {"name": name})
        await self._none(request)

    async def list(self, *, prefix: str | None = None, keys: bool | None = None) -> Listing[models.Limit]:
        """Limits as they hold, with how many runs are inside and how many wait."""
        request = request_of("GET", "/v1/limits", query={"prefix": prefix, "keys": keys})
        return await self._list(request, models.Limit)

    async def set(
        self, name: str, *, concurrency: int | None = None, rate: str | None = None
    ) -> models.Limit:
        """Set a limit in place of what the flow declares: `flow:refund`, `flow:refund/*`,
        `flow:refund/acme`."""
        request = request_of(
            "PUT", "/v1/limits/{name}", {"name": name}, maybe={"concurrency": concurrency, "rate": rate}
        )
        return await self._json(request, models.Limit)
