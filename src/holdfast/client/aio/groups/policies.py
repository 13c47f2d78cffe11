"""`client.policies`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.requests import request_of


class AsyncPolicies(AsyncGroup):
    async def drop(self, name: str) -> None:
        """Its rules match nothing more."""
        request = request_of("DELETE", "/v1/policies/{name}", {"name": name})
        await self._none(request)

    async def list(self) -> Listing[models.HoldSetting]:
        """Those that are kept in the store, by name."""
        request = request_of("GET", "/v1/policies")
        return await self._list(request, models.HoldSetting)

    async def put(self, name: str, body: Mapping[str, Any]) -> models.HoldSetting:
        """Write it: it counts for holds that open from now on."""
        request = request_of("PUT", "/v1/policies/{name}", {"name": name}, whole=body)
        return await self._json(request, models.HoldSetting)

    async def simulate(
        self,
        *,
        policy: Mapping[str, Any] | None = None,
        since: str | datetime | None = None,
        flows: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> models.Simulation:
        """What past decisions would have been under these rules. Nothing is written, no judge is asked."""
        request = request_of(
            "POST",
            "/v1/policies/simulate",
            maybe={"policy": policy, "since": since, "flows": flows, "limit": limit},
        )
        return await self._json(request, models.Simulation)
