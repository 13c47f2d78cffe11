"""`client.admin`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.requests import request_of


class AsyncAdmin(AsyncGroup):
    async def figures(self) -> models.Figures:
        """How much there is to do, and how late it is."""
        request = request_of("GET", "/v1/figures")
        return await self._json(request, models.Figures)

    async def status(self) -> models.Status:
        """How the server and its store are."""
        request = request_of("GET", "/v1/admin/status")
        return await self._json(request, models.Status)

    async def workers(self) -> Listing[models.Worker]:
        """Who works, by name; also those that have fallen silent within the last day."""
        request = request_of("GET", "/v1/workers")
        return await self._list(request, models.Worker)
