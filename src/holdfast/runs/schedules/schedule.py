"""A schedule as it is stored: when it fires, what it starts, and its state."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import KeyMissingError, SchemaTooNewError
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.clock import MICROS
from holdfast.types.schedule import ScheduleRow

MISSED: Final = ("skip", "last", "all")
OVERLAP: Final = ("allow", "skip", "wait", "cancel")
GRACE: Final = 60 * MICROS
OUTCOMES: Final = ("started", "triggered", "filled", "skipped", "missed", "failed")
HISTORY: Final = 100
"""Firings that are kept: the whole history is part of the schedule's row, which each firing writes."""


class SchedulePlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The request: one of `cron`, `every` and `at`. Durations and instants are microseconds."""

    cron: str = ""
    every: int = 0
    at: int | None = None
    zone: str = "UTC"  # of `cron`
    anchor: int = 0  # of `every`: an instant that it fires at
    start: int | None = None
    end: int | None = None
    jitter: int = 0
    missed: str = "last"
    grace: int = GRACE
    overlap: str = "skip"
    input: Any = None
    stamp: str = ""  # the field of the input that gets the instant
    options: dict[str, Any] = {}  # of the run: lane, priority, thread, mode, deployment, instance_key

    def when(self) -> tuple[Any, ...]:
        """What determines its instants: if this is unchanged, the next one stays."""
        return self.cron, self.every, self.at, self.zone, self.anchor, self.start, self.end


class TriggerRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request for a run now, whatever the clock says. The token makes it one run."""

    token: str
    by: str
    input: Any = None
    via: tuple[str, ...] = ()  # everyone in the chain of the caller's credential


class ScheduleFiring(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an instant. `outcome`: one of `OUTCOMES`. `last`: of several that were missed, the last
    one; `instant` is the first."""

    instant: int
    at: int  # when it was decided
    outcome: str
    run: str | None = None
    reason: str = ""
    last: int | None = None


class FillRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Runs for instants of the past. `next`: the first that is not handled yet. With `one_by_one`, each
    waits until the one before it has ended."""

    token: str
    by: str
    next: int
    last: int
    one_by_one: bool = False
    via: tuple[str, ...] = ()  # everyone in the chain of the caller's credential


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`due`: the next instant, before any jitter."""

    due: int | None = None
    # the instant that is about to be started: it counts, whatever happens in between
    firing: int | None = None
    paused: bool = False
    reason: str = ""
    by: str = ""  # who set it, paused it, or resumed it: the last of them
    # who defined its times and flow, and is the initiator of its runs; '': it is in the code
    set_by: str = ""
    set_via: tuple[str, ...] = ()  # everyone in the chain of that person's credential
    declared: bool = False  # declared by code, and not changed by an operator since
    asked: tuple[TriggerRequest, ...] = ()
    passed: int = 0  # instants that were skipped because the previous run had not ended
    trouble: str = ""  # why the last instant started nothing, or not all that was missed
    trouble_at: int | None = None
    history: tuple[ScheduleFiring, ...] = ()  # the newest `HISTORY`, oldest first
    filling: tuple[FillRequest, ...] = ()


class ScheduleBody(msgspec.Struct, frozen=True, kw_only=True):
    plan: SchedulePlan
    standing: ScheduleState


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule. `next_at`: when it fires next, with its jitter; None: paused, or over."""

    tenant: str
    name: str
    flow: str
    plan: SchedulePlan
    standing: ScheduleState
    next_at: int | None
    last_at: int | None
    last_run: str | None
    revision: int
    updated_at: int

    @property
    def paused(self) -> bool:
        return self.standing.paused

    @property
    def over(self) -> bool:
        """It will not fire again by itself."""
        return self.standing.due is None and not self.standing.paused


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ScheduleBody).decode


def read(row: ScheduleRow) -> Schedule:
    """Raises KeyMissingError if its key is missing, and SchemaTooNewError if a newer version wrote it."""
    if is_encrypted(row.body):
        raise KeyMissingError(
            f"the schedule {row.name!r} is encrypted under a key that is not here.",
            hint="Name the key file: HOLDFAST_KEYS=path/to/keys.json.",
        )
    try:
        body = _decode(row.body)
    except msgspec.MsgspecError as error:
        raise SchemaTooNewError(
            f"the schedule {row.name!r} cannot be read by this version: {error}.",
            hint="A newer version wrote it. Update Holdfast here, or set the schedule again.",
        ) from error
    return Schedule(
        tenant=row.tenant,
        name=row.name,
        flow=row.flow,
        plan=body.plan,
        standing=body.standing,
        next_at=row.next_at,
        last_at=row.last_at,
        last_run=row.last_run,
        revision=row.revision,
        updated_at=row.updated_at,
    )


def write(schedule: Schedule) -> ScheduleRow:
    return ScheduleRow(
        tenant=schedule.tenant,
        name=schedule.name,
        flow=schedule.flow,
        body=_encode(ScheduleBody(plan=schedule.plan, standing=schedule.standing)),
        next_at=schedule.next_at,
        last_at=schedule.last_at,
        last_run=schedule.last_run,
    )
