"""`client.session`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup
from holdfast.client.requests import request_of


class AsyncSession(AsyncGroup):
    async def begin(self, token: str) -> None:
        """Sign in with a token, in a browser: it becomes a session, and ends with the token."""
        request = request_of("POST", "/v1/session", sent={"token": token})
        await self._none(request)

    async def end(self) -> None:
        """Sign out, here and everywhere this session is used."""
        request = request_of("DELETE", "/v1/session")
        await self._none(request)

    async def get(self) -> models.Session:
        """Who the caller is, and what they may."""
        request = request_of("GET", "/v1/session")
        return await self._json(request, models.Session)
