"""`client.notices`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.requests import request_of


class AsyncNotices(AsyncGroup):
    async def list(self) -> Listing[models.DeadNotice]:
        """Messages to people that were given up, at most 200."""
        request = request_of("GET", "/v1/notices/dead")
        return await self._list(request, models.DeadNotice)

    async def replay(self, message: str) -> models.DeadNotice:
        """Try it again, once its cause is fixed."""
        request = request_of("POST", "/v1/notices/dead/{message}/replay", {"message": message})
        return await self._json(request, models.DeadNotice)
