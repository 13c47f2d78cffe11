"""Schedules: flows that are started by the clock."""

from __future__ import annotations

import msgspec


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    """`body` says when and what (`runs.schedules`); `revision` grows by one with each write."""

    tenant: str
    name: str
    flow: str
    body: bytes
    next_at: int | None  # None: never again, or paused
    last_at: int | None = None
    last_run: str | None = None
    revision: int = 0
    updated_at: int = 0
