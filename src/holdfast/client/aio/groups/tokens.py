"""`client.tokens`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from collections.abc import Sequence

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.requests import request_of


class AsyncTokens(AsyncGroup):
    async def create(
        self,
        subject: str,
        *,
        roles: Sequence[str] | None = None,
        rights: Sequence[models.Right] | None = None,
        groups: Sequence[str] | None = None,
        expires_at: str | None = None,
        note: str | None = None,
    ) -> models.Token:
        """Make a token of this tenant, with no more rights than your own. Its text is shown only now."""
        request = request_of(
            "POST",
            "/v1/tokens",
            sent={"subject": subject},
            maybe={
                "roles": roles,
                "rights": rights,
                "groups": groups,
                "expires_at": expires_at,
                "note": note,
            },
        )
        return await self._json(request, models.Token)

    async def list(self) -> Listing[models.Token]:
        """The tenant's tokens, newest first, without their text."""
        request = request_of("GET", "/v1/tokens")
        return await self._list(request, models.Token)

    async def revoke(self, token: str) -> models.Token:
        """Revoke it: here at once, on other servers within five seconds."""
        request = request_of("DELETE", "/v1/tokens/{token}", {"token": token})
        return await self._json(request, models.Token)
