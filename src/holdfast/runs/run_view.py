"""A run as it is shown: the same over HTTP, on pages and on the command line."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.types.clock import iso
from holdfast.types.status import ENDED, RunStatus


class ShownRun(RunRow, frozen=True, kw_only=True):
    """What every view of a run is made from, so that none forgets when a sleeping run wakes up, or that a run
    whose lease has expired is not running any more: it is `resumable`, whether or not a reaper has found
    it."""

    wakes_at: int | None = None


async def shown_runs(store: Store, rows: Sequence[RunRow]) -> list[ShownRun]:
    sleeping = [row.id for row in rows if row.status is RunStatus.waiting]
    times = await store.wake_times(sleeping) if sleeping else {}
    now = store.now()
    return [_shown(row, times.get(row.id), now) for row in rows]


async def shown_run(store: Store, row: RunRow) -> ShownRun:
    (found,) = await shown_runs(store, [row])
    return found


def _shown(row: RunRow, timer: int | None, now: int) -> ShownRun:
    wakes_at = (timer or row.ready_at) if row.status is RunStatus.waiting else None
    fields = {name: getattr(row, name) for name in RunRow.__struct_fields__}
    if row.status is RunStatus.running and _is_lapsed(row, now):
        fields["status"] = RunStatus.resumable
    return ShownRun(**fields, wakes_at=wakes_at)


def is_interrupted(row: RunRow, now: int) -> bool:
    """Whether it has not ended and no live worker has it."""
    return row.status not in ENDED and (row.worker is None or _is_lapsed(row, now))


def _is_lapsed(row: RunRow, now: int) -> bool:
    return row.lease_until is not None and row.lease_until <= now


class RunWire(msgspec.Struct, kw_only=True):
    """`status`: pending, running, waiting, pending_input, resumable, completed, failed or cancelled.
    `wakes_at`: until when a run with the status waiting sleeps."""

    id: str
    flow: str
    version: str
    status: RunStatus
    lane: str
    priority: int
    tenant: str
    created_at: str | None
    updated_at: str | None
    ended_at: str | None = None
    wakes_at: str | None = None
    thread: str | None = None
    instance_key: str | None = None
    started_by: str | None = None
    deployment: str | None = None
    parent_run: str | None = None
    forked_from: str | None = None
    superseded_by: str | None = None
    error: str | None = None
    head: int = 0
    event_seq: int = 0
    dead: bool = False
    read_only: bool = False


def run_wire(row: ShownRun) -> RunWire:
    return RunWire(
        id=row.id,
        flow=row.flow,
        version=row.version,
        status=row.status,
        lane=row.lane,
        priority=row.priority,
        tenant=row.tenant,
        created_at=_moment(row.created_at),
        updated_at=_moment(row.updated_at),
        ended_at=_moment(row.ended_at),
        wakes_at=_moment(row.wakes_at),
        thread=row.thread,
        instance_key=row.instance_key,
        started_by=row.started_by,
        deployment=row.deployment,
        parent_run=row.parent_run,
        forked_from=row.forked_from,
        superseded_by=row.superseded_by,
        error=row.error,
        head=row.head,
        event_seq=row.event_seq,
        dead=row.dead,
        read_only=row.read_only,
    )


def _moment(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)
