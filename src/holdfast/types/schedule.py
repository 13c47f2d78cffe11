"""Schedules: flows that are started at set times."""

from __future__ import annotations

import re

import msgspec

_STARTED = re.compile(r"schedule:(?P<name>[^:@]*?)(?: \((?P<person>.+)\))?")


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    """`body` says when and what (`runs.schedules`); `revision` grows by one with each write."""

    tenant: str
    name: str
    flow: str
    body: bytes
    next_at: int | None  # None: finished or paused
    last_at: int | None = None
    last_run: str | None = None
    revision: int = 0
    updated_at: int = 0


def starter_of_schedule(name: str, set_by: str) -> str:
    """The `started_by` of a scheduled run: `schedule:nightly (user:dana)`; `set_by` '': declared in code."""
    return f"schedule:{name} ({set_by})" if set_by else f"schedule:{name}"


def person_behind(started_by: str | None) -> str | None:
    """The person responsible for the start of a run: for a scheduled run, the person who set the schedule.
    None: not known. Names of schedules have no colon, so the text cannot be mistaken for another starter."""
    found = _STARTED.fullmatch(started_by or "")
    return found["person"] if found else started_by
