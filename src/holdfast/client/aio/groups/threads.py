"""`client.threads`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
# ruff: noqa: A002
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup
from holdfast.client.aio.pages import AsyncPages
from holdfast.client.requests import request_of


class AsyncThreads(AsyncGroup):
    def runs(
        self,
        thread: str,
        *,
        status: Sequence[models.RunStatus] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Run]:
        """The runs of a thread, newest first."""
        request = request_of("GET", "/v1/threads/{thread}/runs", {"thread": thread}, query={"status": status})
        return self._pages(request, models.Run, limit, cursor)

    async def say(
        self,
        thread: str,
        content: str | Mapping[str, Any] | None = None,
        *,
        flow: str | None = None,
        workflow_uri: str | None = None,
        version: str | None = None,
        input: Mapping[str, Any] | None = None,
        lane: str | None = None,
        priority: int | None = None,
        instance_key: str | None = None,
        deployment: str | None = None,
        mode: Literal["barrier", "exit", "strict"] | None = None,
        breaks: Sequence[str] | None = None,
        wait: float | None = None,
        request_id: str | None = None,
        auto_resume_pending: bool | None = None,
        idempotency_key: str | None = None,
    ) -> models.RunDetail:
        """Say something in a thread.

        Where a run of it waits for input, the message is the answer: 200 and that run, which resumes
        (409 where several questions are open and none is named). Otherwise, and with
        `auto_resume_pending=false`, it starts a run of `flow` in the thread: 201."""
        request = request_of(
            "POST",
            "/v1/threads/{thread}/runs",
            {"thread": thread},
            query={"auto_resume_pending": auto_resume_pending},
            maybe={
                "flow": flow,
                "workflow_uri": workflow_uri,
                "version": version,
                "input": input,
                "lane": lane,
                "priority": priority,
                "instance_key": instance_key,
                "deployment": deployment,
                "mode": mode,
                "breaks": breaks,
                "wait": wait,
                "content": content,
                "request_id": request_id,
            },
            keyed=True,
            key=idempotency_key,
            wait=wait,
        )
        return await self._json(request, models.RunDetail)
