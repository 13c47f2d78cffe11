"""`client.schedules`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/schedules.py. Do not change it here.

# ruff: noqa: A002
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group
from holdfast.client.sync.pages import Pages


class Schedules(Group):
    def drop(self, name: str, *, if_match: str | None = None) -> None:
        """Delete it. Runs that it has started continue."""
        request = request_of("DELETE", "/v1/schedules/{name}", {"name": name}, if_match=if_match)
        self._none(request)

    def get(self, name: str) -> models.Schedule:
        """When it fires, what it starts, and how it goes."""
        request = request_of("GET", "/v1/schedules/{name}", {"name": name})
        return self._json(request, models.Schedule)

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[models.Schedule]:
        """The tenant's schedules, by name."""
        request = request_of("GET", "/v1/schedules")
        return self._pages(request, models.Schedule, limit, cursor)

    def next(self, name: str, *, count: int | None = None) -> models.Instants:
        """When it would fire, if it is not paused."""
        request = request_of("GET", "/v1/schedules/{name}/next", {"name": name}, query={"count": count})
        return self._json(request, models.Instants)

    def pause(self, name: str, *, reason: str | None = None) -> models.Schedule:
        """It fires no more until it is resumed."""
        request = request_of("POST", "/v1/schedules/{name}/pause", {"name": name}, maybe={"reason": reason})
        return self._json(request, models.Schedule)

    def put(
        self,
        name: str,
        flow: str,
        *,
        cron: str | None = None,
        every: str | None = None,
        at: str | None = None,
        zone: str | None = None,
        anchor: str | None = None,
        start: str | None = None,
        end: str | None = None,
        jitter: str | None = None,
        missed: Literal["all", "last", "skip"] | None = None,
        grace: str | None = None,
        overlap: Literal["allow", "cancel", "skip", "wait"] | None = None,
        input: Mapping[str, Any] | None = None,
        stamp: str | None = None,
        lane: str | None = None,
        priority: int | None = None,
        thread: str | None = None,
        instance_key: str | None = None,
        deployment: str | None = None,
        mode: Literal["barrier", "exit", "strict"] | None = None,
        if_match: str | None = None,
    ) -> models.Schedule:
        """Make a schedule (201), or change it from now on (200). `If-Match`: only over the one you have
        seen."""
        request = request_of(
            "PUT",
            "/v1/schedules/{name}",
            {"name": name},
            sent={"flow": flow},
            maybe={
                "cron": cron,
                "every": every,
                "at": at,
                "zone": zone,
                "anchor": anchor,
                "start": start,
                "end": end,
                "jitter": jitter,
                "missed": missed,
                "grace": grace,
                "overlap": overlap,
                "input": input,
                "stamp": stamp,
                "lane": lane,
                "priority": priority,
                "thread": thread,
                "instance_key": instance_key,
                "deployment": deployment,
                "mode": mode,
            },
            if_match=if_match,
        )
        return self._json(request, models.Schedule)

    def resume(self, name: str) -> models.Schedule:
        """It fires again, from the next instant on."""
        request = request_of("POST", "/v1/schedules/{name}/resume", {"name": name})
        return self._json(request, models.Schedule)

    def trigger(
        self, name: str, *, input: Mapping[str, Any] | None = None, idempotency_key: str | None = None
    ) -> models.ScheduleTrigger:
        """One run now, beside its instants, also while it is paused."""
        request = request_of(
            "POST",
            "/v1/schedules/{name}/trigger",
            {"name": name},
            maybe={"input": input},
            keyed=True,
            key=idempotency_key,
        )
        return self._json(request, models.ScheduleTrigger)
