"""A run as it is shown: the same over HTTP, on pages and on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.runs.child_questions import is_child_question
from holdfast.runs.engine_report import is_of_engine
from holdfast.runs.unserved import missing_requirements
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.types.clock import iso
from holdfast.types.hold import CALLBACK, MACHINE_WAITS, UNASKED, HoldFilter, HoldOrder, HoldRow
from holdfast.types.ids import RunId
from holdfast.types.queue_message import EVENTS, RUNS
from holdfast.types.status import ENDED, HoldStatus, RunStatus, run_label

_MOST_WAITS: Final = 1000
"""Of the runs of one page."""


class MachineWait(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run waits for that no person answers: an event with this name and key, a callback of this
    name, the end of a child run, or a message of a queue. `until`: then the wait is over; a heartbeat of a
    callback makes it later."""

    event: str | None = None
    callback: str | None = None
    key: str | None = None
    run: str | None = None
    queue: str | None = None
    until: str | None = None

    @property
    def text(self) -> str:
        """`the event payment.received (A17)`"""
        if self.event is not None:
            return f"the event {self.event}" + (f" ({self.key})" if self.key is not None else "")
        if self.callback is not None:
            return f"the callback {self.callback}"
        return f"its child run {self.run}" if self.run is not None else f"a message of {self.queue}"


class ShownRun(RunRow, frozen=True, kw_only=True):
    """What every view of a run is made from, so that none forgets when a sleeping run wakes up, what a run
    waits for, or that a run whose lease has expired is not running any more: it is `resumable`, whether or
    not a reaper has found it. `asks`: it waits for a person. `answered`: what it waited for is there, and a
    worker is to resume it. `missing`: what it needs of a worker and no live one has."""

    wakes_at: int | None = None
    waits_for: tuple[MachineWait, ...] = ()
    asks: bool = False
    answered: bool = False
    missing: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its status as people read it; the time of `wakes_at` is added where times are shown."""
        if self.missing:
            return f"waiting for a worker with {' and '.join(self.missing)}"
        if self.answered:
            return run_label(RunStatus.pending)
        if self.asks or not self.waits_for:
            return run_label(self.status)
        more = len(self.waits_for) - 1
        return f"waiting for {self.waits_for[0].text}" + (f" and {more} more" if more else "")


async def shown_runs(store: Store, rows: Sequence[RunRow]) -> list[ShownRun]:
    sleeping = [row.id for row in rows if row.status is RunStatus.waiting]
    times = await store.wake_times(sleeping) if sleeping else {}
    waits = await _open_waits(store, [row.id for row in rows if row.status is RunStatus.pending_input])
    missing = await missing_requirements(store, rows)
    now = store.now()
    return [
        _shown(row, times.get(row.id), waits.get(row.id, []), missing.get(row.id, ()), now) for row in rows
    ]


async def _open_waits(store: Store, runs: Sequence[RunId]) -> dict[RunId, list[HoldRow]]:
    found: dict[RunId, list[HoldRow]] = {}
    if runs:
        where = HoldFilter(run=tuple(runs), status=(HoldStatus.pending,))
        for hold, _ in await store.list_holds(where, order=HoldOrder.oldest, limit=_MOST_WAITS):
            found.setdefault(hold.run, []).append(hold)
    return found


def machine_wait(hold: HoldRow) -> MachineWait:
    """Of a hold of one of the types `MACHINE_WAITS`."""
    if hold.type == CALLBACK:
        name = msgspec.json.decode(hold.context).get("callback", "")
        return MachineWait(callback=str(name), until=_moment(hold.expires_at))
    scope, _, queue = (hold.terms.queue or "").partition("/")
    until = _moment(hold.expires_at)
    if scope == RUNS:
        return MachineWait(run=queue, until=until)
    if scope == EVENTS:
        context = msgspec.json.decode(hold.context)
        return MachineWait(event=str(context.get("event", "")), key=context.get("key"), until=until)
    return MachineWait(queue=hold.terms.queue, until=until)


async def shown_run(store: Store, row: RunRow) -> ShownRun:
    (found,) = await shown_runs(store, [row])
    return found


def _shown(
    row: RunRow, timer: int | None, holds: Sequence[HoldRow], missing: tuple[str, ...], now: int
) -> ShownRun:
    wakes_at = (timer or row.ready_at) if row.status is RunStatus.waiting else None
    fields = {name: getattr(row, name) for name in RunRow.__struct_fields__}
    if row.status is RunStatus.running and _is_lapsed(row, now):
        fields["status"] = RunStatus.resumable
    # A run that waits for the answer to a question of a run that it manages asks a person.
    machine = [hold for hold in holds if hold.type in MACHINE_WAITS and not is_child_question(hold)]
    waits = tuple(machine_wait(hold) for hold in machine)
    asks = any(hold.type not in UNASKED or is_child_question(hold) for hold in holds)
    answered = row.status is RunStatus.pending_input and not holds and _is_ready(row, now)
    return ShownRun(
        **fields, wakes_at=wakes_at, waits_for=waits, asks=asks, answered=answered, missing=missing
    )


def is_interrupted(row: RunRow, now: int) -> bool:
    """Whether it has not ended and no live worker has it."""
    return row.status not in ENDED and (row.worker is None or _is_lapsed(row, now))


def _is_ready(row: RunRow, now: int) -> bool:
    if is_of_engine(row.worker):
        # Its workflow has a message to take in.
        return row.inbox_seq > 0
    return row.worker is None and row.ready_at is not None and row.ready_at <= now


def _is_lapsed(row: RunRow, now: int) -> bool:
    return row.lease_until is not None and row.lease_until <= now


class RunWire(msgspec.Struct, kw_only=True):
    """`status`: pending, running, waiting, pending_input, resumable, completed, failed or cancelled.
    `wakes_at`: until when a run with the status waiting sleeps. `waits_for`: the events, callbacks, child
    runs and messages that a run with the status pending_input waits for; no person is asked for those.
    `asks`: it waits for the answer of a person. `answered`: its answer is recorded, and it waits for a worker
    to resume it; people read "queued". `missing`: what it needs of a worker and no live one has,
    such as `backend:model` or `provider:openai`; it waits for such a worker."""

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
    waits_for: list[MachineWait] = []
    asks: bool = False
    answered: bool = False
    missing: list[str] = []
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
        waits_for=list(row.waits_for),
        asks=row.asks,
        answered=row.answered,
        missing=list(row.missing),
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
