"""`client.checkpoints`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
# ruff: noqa: A002
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.aio.pages import AsyncPages
from holdfast.client.requests import request_of


class AsyncCheckpoints(AsyncGroup):
    async def cancel(
        self, checkpoint: str, *, reason: str | None = None, if_match: str | None = None
    ) -> models.Checkpoint:
        """Withdraw it without a decision."""
        request = request_of(
            "POST",
            "/v1/checkpoints/{checkpoint}/cancel",
            {"checkpoint": checkpoint},
            maybe={"reason": reason},
            if_match=if_match,
        )
        return await self._json(request, models.Checkpoint)

    async def get(self, checkpoint: str) -> models.Checkpoint:
        """One checkpoint."""
        request = request_of("GET", "/v1/checkpoints/{checkpoint}", {"checkpoint": checkpoint})
        return await self._json(request, models.Checkpoint)

    async def history(self, checkpoint: str) -> Listing[models.Entry]:
        """Created, notification sent, resolved, and what else happened, oldest first."""
        request = request_of("GET", "/v1/checkpoints/{checkpoint}/history", {"checkpoint": checkpoint})
        return await self._list(request, models.Entry)

    def list(
        self,
        *,
        view: models.HoldView | None = None,
        q: str | None = None,
        status: Sequence[models.HoldStatus] | None = None,
        type: Sequence[str] | None = None,
        assignee: Sequence[str] | None = None,
        group: Sequence[str] | None = None,
        role: Sequence[str] | None = None,
        priority: Sequence[str] | None = None,
        deployment: Sequence[str] | None = None,
        flow: Sequence[str] | None = None,
        run: Sequence[str] | None = None,
        instance_key: Sequence[str] | None = None,
        tag: Sequence[str] | None = None,
        text: str | None = None,
        created_from: str | datetime | None = None,
        created_to: str | datetime | None = None,
        expires_from: str | datetime | None = None,
        expires_to: str | datetime | None = None,
        resolved_by: Sequence[str] | None = None,
        order: models.HoldOrder | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        checkpoint_type: Sequence[str] | None = None,
        core: Sequence[str] | None = None,
        execution: Sequence[str] | None = None,
    ) -> AsyncPages[models.Checkpoint]:
        """Holds that you may see; `checkpoint_type=debug_breakpoint` for the bar of breakpoints."""
        request = request_of(
            "GET",
            "/v1/checkpoints",
            query={
                "view": view,
                "q": q,
                "status": status,
                "type": type,
                "assignee": assignee,
                "group": group,
                "role": role,
                "priority": priority,
                "deployment": deployment,
                "flow": flow,
                "run": run,
                "instance_key": instance_key,
                "tag": tag,
                "text": text,
                "created_from": created_from,
                "created_to": created_to,
                "expires_from": expires_from,
                "expires_to": expires_to,
                "resolved_by": resolved_by,
                "order": order,
                "checkpoint_type": checkpoint_type,
                "core": core,
                "execution": execution,
            },
        )
        return self._pages(request, models.Checkpoint, limit, cursor)

    async def reassign(
        self,
        checkpoint: str,
        assignee: str | None = None,
        *,
        expires_at: str | datetime | None = None,
        reason: str | None = None,
        if_match: str | None = None,
    ) -> models.Checkpoint:
        """Reassign it; the new assignee is notified."""
        request = request_of(
            "POST",
            "/v1/checkpoints/{checkpoint}/reassign",
            {"checkpoint": checkpoint},
            maybe={"assignee": assignee, "expires_at": expires_at, "reason": reason},
            if_match=if_match,
        )
        return await self._json(request, models.Checkpoint)

    async def resolve(
        self,
        checkpoint: str,
        decision: str | None = None,
        *,
        resolution: str | Mapping[str, Any] | None = None,
        response_data: Any = None,
        comment: str | None = None,
        request_hash: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.Checkpoint:
        """Decide it: `{"decision": ...}` or `{"resolution": ...}`. A breakpoint takes `continue`."""
        request = request_of(
            "POST",
            "/v1/checkpoints/{checkpoint}/resolve",
            {"checkpoint": checkpoint},
            maybe={
                "decision": decision,
                "resolution": resolution,
                "response_data": response_data,
                "comment": comment,
                "request_hash": request_hash,
                "reason": reason,
            },
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return await self._json(request, models.Checkpoint)
