"""Schedules: flows that are started by the clock."""

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
    next_at: int | None  # None: never again, or paused
    last_at: int | None = None
    last_run: str | None = None
    revision: int = 0
    updated_at: int = 0


def starter_of_schedule(name: str, set_by: str) -> str:
    """What a run says of who started it: `schedule:nightly (user:dana)`; `set_by` '': it is in the code."""
    return f"schedule:{name} ({set_by})" if set_by else f"schedule:{name}"


def person_behind(started_by: str | None) -> str | None:
    """Who answers for it that a run was started: whoever set its schedule, as it was then. None: nobody is
    known. The names of schedules have no colon, so that nobody else is meant by it."""
    found = _STARTED.fullmatch(started_by or "")
    return found["person"] if found else started_by
