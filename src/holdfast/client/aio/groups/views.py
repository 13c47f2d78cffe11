"""`client.views`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.aio.pages import AsyncPages
from holdfast.client.requests import request_of


class AsyncViews(AsyncGroup):
    async def change(
        self,
        view: str,
        title: str,
        filters: models.Filters | Mapping[str, Any],
        *,
        order: models.HoldOrder | None = None,
        shared: bool | None = None,
        if_match: str | None = None,
    ) -> models.SavedView:
        """Change it: its owner and admins may. `If-Match`: only the version that you have seen."""
        request = request_of(
            "PUT",
            "/v1/views/{view}",
            {"view": view},
            sent={"title": title, "filters": filters},
            maybe={"order": order, "shared": shared},
            if_match=if_match,
        )
        return await self._json(request, models.SavedView)

    async def drop(self, view: str) -> None:
        """Drop it; the holds stay."""
        request = request_of("DELETE", "/v1/views/{view}", {"view": view})
        await self._none(request)

    async def get(self, view: str) -> models.SavedView:
        """One view."""
        request = request_of("GET", "/v1/views/{view}", {"view": view})
        return await self._json(request, models.SavedView)

    def holds(
        self, view: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Hold]:
        """What it shows you: the same view shows each only what they may see."""
        request = request_of("GET", "/v1/views/{view}/holds", {"view": view})
        return self._pages(request, models.Hold, limit, cursor)

    async def list(self, *, counts: bool | None = None) -> Listing[models.SavedView]:
        """Your own and the shared ones, by title. `counts=true`: with how many holds each has for you."""
        request = request_of("GET", "/v1/views", query={"counts": counts})
        return await self._list(request, models.SavedView)

    async def save(
        self,
        title: str,
        filters: models.Filters | Mapping[str, Any],
        *,
        order: models.HoldOrder | None = None,
        shared: bool | None = None,
    ) -> models.SavedView:
        """Keep a list of holds under a title."""
        request = request_of(
            "POST",
            "/v1/views",
            sent={"title": title, "filters": filters},
            maybe={"order": order, "shared": shared},
        )
        return await self._json(request, models.SavedView)
