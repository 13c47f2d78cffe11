"""`client.deployments`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.requests import request_of


class AsyncDeployments(AsyncGroup):
    async def delegate(self, name: str, to: str, *, seconds: int | None = None) -> models.Deployment:
        """Delegate it to a person: holds for `delegated_user` go to them."""
        request = request_of(
            "PUT",
            "/v1/deployments/{name}/delegation",
            {"name": name},
            sent={"to": to},
            maybe={"seconds": seconds},
        )
        return await self._json(request, models.Deployment)

    async def get(self, name: str) -> models.Deployment:
        """By name or id."""
        request = request_of("GET", "/v1/deployments/{name}", {"name": name})
        return await self._json(request, models.Deployment)

    async def list(self) -> Listing[models.Deployment]:
        """Flows put to work under a name; a hold's `deployment` is its id."""
        request = request_of("GET", "/v1/deployments")
        return await self._list(request, models.Deployment)

    async def put(
        self,
        name: str,
        flow: str,
        *,
        version: str | None = None,
        mode: str | None = None,
        skills: Sequence[str] | None = None,
        policies: Sequence[str] | None = None,
        on_changed_skill: str | None = None,
        defaults: models.Defaults | Mapping[str, Any] | None = None,
    ) -> models.Deployment:
        """Make it, or change its settings for runs that start later."""
        request = request_of(
            "PUT",
            "/v1/deployments/{name}",
            {"name": name},
            sent={"flow": flow},
            maybe={
                "version": version,
                "mode": mode,
                "skills": skills,
                "policies": policies,
                "on_changed_skill": on_changed_skill,
                "defaults": defaults,
            },
        )
        return await self._json(request, models.Deployment)

    async def revoke_delegation(self, name: str) -> models.Deployment:
        """End its delegation."""
        request = request_of("DELETE", "/v1/deployments/{name}/delegation", {"name": name})
        return await self._json(request, models.Deployment)
