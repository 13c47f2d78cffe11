"""Runs move to an engine and back. Who drives a run is one row of the store, so it has one owner at every
moment; what the engine has to do about it is an order in the outbox, written in the same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.errors import RunBusyError, RunEndedError
from holdfast.model.position import wakes_of
from holdfast.runs.driver.load import load
from holdfast.runs.engine_report import is_of_engine
from holdfast.runs.history.versions import reader_of
from holdfast.store.errors import require_live
from holdfast.store.rows import RunMove, RunRow
from holdfast.telemetry import crashpoint
from holdfast.types.document import Document
from holdfast.types.event import EventRow
from holdfast.types.outbox import ENGINE_START, OutboxMessage
from holdfast.types.record import NewTimer
from holdfast.types.status import PARKED, RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.protocols import Store

FOREVER: Final = 253_402_300_799_000_000
"""Until when an engine has its runs, in microseconds: the end of the year 9999."""
KIND: Final = "engine_run"
"""Of the document with what the row of a run cannot hold."""


class StartOrder(msgspec.Struct):
    """What the outbox has for a run of an engine: start it. `serial`: its nodes draw on one budget; None: a
    worker with its code knows. `replaces`: the run whose workflow is told that it is not to continue."""

    engine: str
    serial: bool | None = False
    replaces: str = ""


class EngineRunState(msgspec.Struct, frozen=True, kw_only=True):
    """`engine`: where a failed run was, and continues when it is resumed. `limit`: that a run counts against
    when it continues; while it waits its row has none."""

    engine: str = ""
    serial: bool = False
    limit: str = ""


async def read_state(store: Store, row: RunRow) -> EngineRunState:
    found = await store.document(row.tenant, KIND, row.id)
    return EngineRunState() if found is None else msgspec.json.decode(found.body, type=EngineRunState)


async def write_state(store: Store, row: RunRow, state: EngineRunState) -> None:
    body = msgspec.json.encode(state)
    await store.put_document(Document(tenant=row.tenant, kind=KIND, name=row.id, body=body))


async def drop_state(store: Store, row: RunRow) -> None:
    await store.drop_document(row.tenant, KIND, row.id)


async def with_limit(store: Store, row: RunRow) -> RunRow:
    """With the limit of a run that waits on an engine, or failed there."""
    if row.limit or not (is_of_engine(row.worker) or row.status is RunStatus.failed):
        return row
    return msgspec.structs.replace(row, limit=(await read_state(store, row)).limit)


def is_parked(row: RunRow) -> bool:
    """Whether it waits for a person, an event or a time, and no built-in worker has it in memory."""
    return row.status in PARKED and (row.worker is None or is_of_engine(row.worker))


async def move_to_engine(service: RunAccess, row: RunRow, engine: str, *, by: str = "user:local") -> RunRow:
    """A run that waits continues on this engine; its workers start it there. A run that is there already does
    not change. Raises RunBusyError if it does not wait, RunEndedError if it has ended."""
    require_live(row)
    if row.worker == engine:
        return row
    require_parked(row)
    if row.worker is not None:
        raise RunBusyError(
            f"run {row.id} is on {row.worker}.",
            hint="Move it to the built-in workers first: --engine none.",
            run=row.id,
        )
    if row.limit:
        # Before it has no limit of its own: what is written for a run that is then not moved is not read.
        await write_state(service.store, row, EngineRunState(engine=engine, limit=row.limit))
    order = StartOrder(engine, serial=None)
    return await _move(
        service, row, order, to=engine, lease_until=FOREVER, event=_event(service, row, engine, by)
    )


async def move_from_engine(service: RunAccess, row: RunRow, *, by: str = "user:local") -> RunRow:
    """A run of an engine that waits continues on the built-in workers; its workflow is told to end. So does a
    failed one when it is resumed. Raises RunBusyError if it does not wait."""
    require_live(row)
    if row.status is RunStatus.failed:
        await drop_state(service.store, row)
        return row
    require_parked(row)
    if row.worker is None:
        return row
    reader = await reader_of(service, row)
    loaded = await load(
        service.store, reader.codec, reader.graph, row.id, blobs=service.runtime.blobs, row=row
    )
    timers = [NewTimer(token, at) for token, at in wakes_of(loaded.pos).items()]
    limit = (await with_limit(service.store, row)).limit
    order = StartOrder(row.worker, replaces=row.id)
    return await _move(service, row, order, timers=timers, limit=limit, event=_event(service, row, "", by))


async def resume_on_engine(
    service: RunAccess, row: RunRow, payload: bytes, event: EventRow | None = None
) -> bool | None:
    """A failed run that was on an engine continues there. None if it was on none; False if another run of its
    entity is live, or it has changed."""
    if row.status is not RunStatus.failed:
        return None
    state = await read_state(service.store, row)
    if not state.engine:
        return None
    limit = row.limit or state.limit
    if limit:
        await write_state(service.store, row, msgspec.structs.replace(state, limit=limit))
    order = StartOrder(state.engine, state.serial)
    event = event or _event(service, row, state.engine, "user:local")
    move = _move_of(row, order, to=state.engine, lease_until=FOREVER, resume=payload, event=event)
    return await service.store.move_run(move) is not None


def require_parked(row: RunRow) -> None:
    """Raises RunBusyError, RunEndedError."""
    if row.status in (RunStatus.completed, RunStatus.cancelled, RunStatus.failed):
        raise RunEndedError(f"run {row.id} is {run_label(row.status)}: it cannot be moved.", run=row.id)
    if not is_parked(row):
        where = f" on {row.worker}" if row.worker else ""
        raise RunBusyError(
            f"run {row.id} is {run_label(row.status)}{where}: only a run that waits is moved.",
            hint="Move it when it waits for a person, an event or a time.",
            run=row.id,
        )


def _event(service: RunAccess, row: RunRow, to: str, by: str) -> EventRow:
    body = msgspec.json.encode({"from": row.worker or "", "to": to, "by": by})
    return EventRow(0, service.store.now(), "run.moved", body)


def _move_of(row: RunRow, order: StartOrder, **change: Any) -> RunMove:
    # With the term: it may be moved there again.
    key = f"{ENGINE_START}:{row.id}:{row.term + 1}"
    message = OutboxMessage(ENGINE_START, key, msgspec.json.encode(order))
    return RunMove(run=row.id, worker=row.worker, term=row.term, head=row.head, outbox=[message], **change)


async def _move(service: RunAccess, row: RunRow, order: StartOrder, **change: Any) -> RunRow:
    moved = await service.store.move_run(_move_of(row, order, **change))
    if moved is None:
        raise RunBusyError(
            f"run {row.id} has changed while it was to be moved; it was not.",
            hint="Move it when it waits again.",
            run=row.id,
        )
    crashpoint("after_move")
    return moved
