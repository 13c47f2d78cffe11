"""`client.audit`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup
from holdfast.client.aio.pages import AsyncPages
from holdfast.client.requests import request_of


class AsyncAudit(AsyncGroup):
    async def head(self) -> models.AuditHead:
        """The current head of the audit."""
        request = request_of("GET", "/v1/audit/head")
        return await self._json(request, models.AuditHead)

    def list(
        self,
        *,
        module: Sequence[str] | None = None,
        checkpoint: str | None = None,
        execution: Sequence[str] | None = None,
        actor: Sequence[str] | None = None,
        action: Sequence[str] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Audit]:
        """What was done and refused, oldest first. A page may be short and still have a `next`."""
        request = request_of(
            "GET",
            "/v1/audit",
            query={
                "module": module,
                "checkpoint": checkpoint,
                "execution": execution,
                "actor": actor,
                "action": action,
                "since": since,
                "until": until,
            },
        )
        return self._pages(request, models.Audit, limit, cursor)

    async def verify(
        self, *, against: models.KnownHead | Mapping[str, Any] | None = None
    ) -> models.AuditVerification:
        """Walk the chain from the first record to the head. `against`: a head that you kept before."""
        request = request_of("POST", "/v1/audit/verify", maybe={"against": against})
        return await self._json(request, models.AuditVerification)
