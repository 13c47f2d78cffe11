"""Runs whose workflow is gone: terminated, timed out or deleted in the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.drivers.temporal.projection import is_driven, keep_engine
from holdfast.engine.decision import CannotContinueError, Decision
from holdfast.engine.end import fail_run, on_handlers_stopped
from holdfast.engine.messages import HandlersStopped
from holdfast.errors import HoldfastError, ProjectionConflictError
from holdfast.runs.driver.load import load
from holdfast.store.rows import RunFilter, RunRow
from holdfast.telemetry import log
from holdfast.types.lease import Lease
from holdfast.types.outbox import ENGINE_START, OutboxState
from holdfast.types.record import RunBatch
from holdfast.types.status import PARKED, RunStatus

if TYPE_CHECKING:
    from holdfast.drivers.temporal.client import TemporalEngine

CLOSED: Final = "engine_closed"
CONFLICTS: Final = "its workflow decided something else than the store has"
YOUNG: Final = 60_000_000
"""Microseconds in which a run is left alone after it changed: its workflow may be starting, or its last
records be on their way."""
PAGE: Final = 200


async def end_closed_runs(engine: TemporalEngine, *, young: int = YOUNG) -> list[RunRow]:
    """End them as failed: their open holds are withdrawn, and open intents are listed in the error."""
    ended: list[RunRow] = []
    engine.figures.history_events = 0
    where, after = RunFilter(worker=engine.name, leased=True), None
    while True:
        rows = await engine.store.list_runs(where, after=after, limit=PAGE)
        old = [row for row in rows if row.updated_at < engine.store.now() - young]
        ended += [row for row in old if await _end_if_closed(engine, row)]
        if len(rows) < PAGE:
            return ended
        after = (rows[-1].created_at, rows[-1].key)


async def _end_if_closed(engine: TemporalEngine, row: RunRow) -> bool:
    if not is_driven(row, engine.name) or await _starts_later(engine, row):
        return False
    closed = await engine.closed_by(row.id)
    if closed is None:
        return False
    # Read again: its last records may have come before its workflow closed.
    found = await engine.store.get_run(row.id)
    if found is None or not is_driven(found, engine.name):
        return False
    try:
        await _end(engine, found, closed)
    except HoldfastError as error:
        log.error("run %s, whose workflow is closed, could not be ended: %s", row.id, error)
        return False
    log.error("run %s failed: its workflow is closed (%s)", row.id, closed, extra={"run": row.id})
    return True


async def _starts_later(engine: TemporalEngine, row: RunRow) -> bool:
    waiting = await engine.store.list_outbox(tenant=row.tenant, topic=ENGINE_START, state=OutboxState.waiting)
    return any(message.run == row.id for message in waiting)


async def _end(engine: TemporalEngine, row: RunRow, closed: str) -> None:
    runtime = engine.runtime
    program = await runtime.find_program(row.version, row.flow)
    codec = runtime.codec_for(program, row.tenant)
    loaded = await load(engine.store, codec, program.graph, row.id, blobs=runtime.blobs, row=row)
    pos = loaded.pos
    open_effects = sorted(
        program.at(pos.scopes[each.scope].graph).graph.nodes[each.node].id
        for each in pos.execs.values()
        if each.intent >= 0 or each.step_intents
    )
    code, text = CLOSED, f"its workflow is closed in the cluster: {closed}"
    if closed == ProjectionConflictError.__name__:
        code = ProjectionConflictError.code
        text = f"{CONFLICTS}: it was reset, or two clusters drive it. Use `holdfast rewind {row.id}`"
    if open_effects:
        text += f"; whether the effects of {', '.join(open_effects)} happened is not known"
    decision = Decision(program.graph, pos, engine.store.now())
    if pos.failing is None:
        fail_run(decision, CannotContinueError(code, text, ""))
    on_handlers_stopped(decision, HandlersStopped())
    records = [record for record, _ in decision.records]
    for record, body in decision.records:
        codec.encode(record, body, row.term)
    codec.clear()
    lease = Lease(row.id, row.key, row.term, engine.name)
    if row.status in PARKED:
        # Only a running run can fail.
        await engine.store.set_idle(lease, status=RunStatus.running)
    await keep_engine(engine.store, row, program)
    await engine.store.settle([RunBatch(lease, records)])
