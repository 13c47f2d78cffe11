"""Loading a run whose journal was damaged (D-19).

Falling back to the last good record is automatic only if the lost range has no effect on the outside;
otherwise the run stops, and an operator forks it. Either way it is an event of the run, and the damaged
record is not changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import BlobMissingError, CheckpointCorruptError, HoldfastError, LeaseLostError
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATED
from holdfast.model.position import Position
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, SnapshotBody
from holdfast.model.shown_names import shown_name
from holdfast.model.snapshot import dump_position
from holdfast.runs.driver.load import LoadedRun, begin, decode_body, fetch_and_apply, load
from holdfast.runs.record_codec import RecordCodec
from holdfast.telemetry import log
from holdfast.types.record import Body, Kind, NewTimer, Record, RunBatch, Side
from holdfast.types.status import REPEATABLE, RunStatus

if TYPE_CHECKING:
    from holdfast.model.program import Program
    from holdfast.runs.driver.services import RunServices
    from holdfast.store.rows import Claim

FELL_BACK = "fell_back"
DAMAGED = "damaged"
STATE_MISSING = "state_missing"
_DOES = frozenset({Kind.step, Kind.intent, Kind.substep, Kind.asked})


async def load_or_repair(services: RunServices, claim: Claim, program: Program) -> LoadedRun:
    """The run at its last record, or before the damage. Raises CheckpointCorruptError or BlobMissingError
    after the run was stopped with that error."""
    codec = services.codec_for(program, claim.run.tenant)
    try:
        loaded = await _load(services, claim, program, codec)
        await services.blobs.materialise(loaded.pos, codec.registry)
    except (CheckpointCorruptError, BlobMissingError) as error:
        await _stop(services, claim, codec, error)
        raise
    return loaded


async def _load(services: RunServices, claim: Claim, program: Program, codec: RecordCodec) -> LoadedRun:
    try:
        return await load(
            services.store, codec, program.graph, claim.run.id, blobs=services.blobs, row=claim.run
        )
    except CheckpointCorruptError as error:
        first = error
    try:
        return await _past_snapshots(services, claim, program.graph, codec, first)
    except CheckpointCorruptError as error:
        return await _fall_back(services, claim, program.graph, codec, error)


async def _past_snapshots(
    services: RunServices, claim: Claim, graph: Graph, codec: RecordCodec, error: CheckpointCorruptError
) -> LoadedRun:
    """A damaged snapshot loses nothing: the records before it still exist."""
    bad = error.facts.get("seq")
    run = claim.run.id
    if not isinstance(bad, int):
        raise error
    # Without its payload, which is what cannot be read; its kind is a column.
    record = (await services.store.read(run, first=bad, last=bad, payloads=False))[0]
    if record.kind != Kind.snapshot or record.outcome == MIGRATED:
        # The result of a migration is in that record alone.
        raise error
    pos = await _replay(services, claim, graph, codec, bad, claim.run.head)
    message = "run %s: its snapshot at record %d is damaged; loaded from the records before it"
    log.warning(message, run, bad, extra={"run": run, "seq": bad})
    return LoadedRun(pos, claim.run.head - bad)


async def _replay(
    services: RunServices, claim: Claim, graph: Graph, codec: RecordCodec, bad: int, upto: int
) -> Position:
    """From the newest snapshot before `bad`, reading no other snapshot on the way."""
    run = claim.run.id
    first = await services.store.last_snapshot(run, bad - 1)
    if first is None:
        raise CheckpointCorruptError(f"run {run} has no good record before record {bad}", seq=bad)
    records = await services.store.read(run, first=first, last=upto)
    # Records after a migration have node numbers of the new graph: they cannot be applied to a position of
    # the old one.
    if any(record.outcome == MIGRATED for record in records[1:]):
        raise CheckpointCorruptError(f"run {run} has no good record after its migration", seq=bad)
    blobs = await services.blobs.of_run(run)
    try:
        pos = await begin(graph, codec, run, records[0], services.store, blobs)
    except CheckpointCorruptError:
        return await _replay(services, claim, graph, codec, first, upto)
    for record in records[1:]:
        if record.kind == Kind.snapshot:
            pos.head = record.seq
        else:
            await fetch_and_apply(graph, pos, record, decode_body(codec, run, record), blobs, codec)
    return pos


async def _fall_back(
    services: RunServices, claim: Claim, graph: Graph, codec: RecordCodec, error: CheckpointCorruptError
) -> LoadedRun:
    bad = error.facts.get("seq")
    row = claim.run
    # Everything before the horizon was pruned: there is nothing to fall back to.
    if not isinstance(bad, int) or bad <= row.horizon:
        raise error
    lost = await services.store.read(row.id, first=bad, payloads=False)
    # An intent counts as well: its effect may have happened without a record of how it ended.
    effects = [r for r in lost if r.kind in _DOES and r.effect and r.effect not in REPEATABLE]
    if effects:
        raise _typed(error, lost, "and later steps had effects on the outside") from error
    if any(r.outcome == MIGRATED for r in lost):
        raise _typed(error, lost, "and the run was migrated after it, which cannot be undone") from error
    pos = await _replay(services, claim, graph, codec, bad, bad - 1)
    for scope in pos.scopes.values():
        # From here on the journal contains records that do not count: lists must not be read by ranges of it.
        scope.tree.fill_all()
        scope.tree.grown.clear()
    # Numbers are never used again: the damaged records stay for an examination, and checkpoints and event
    # cursors that name them stay valid.
    pos.head = row.head
    info = _info(_typed(error, lost, f"the run resumed from record {bad - 1}"))
    noted = _record(pos, claim, AttemptBody(FELL_BACK, info, token=str(bad)), Kind.attempt, FELL_BACK, None)
    body = SnapshotBody(dump_position(pos, whole=True, by_ref=True))
    # A snapshot, so that no later load reads the damaged range again.
    snapshot = _record(pos, claim, body, Kind.snapshot, "", Side(timers=_timers(pos)))
    await _settle(services, claim, codec, [noted, snapshot])
    log.warning("run %s: %s", row.id, info.message, extra={"run": row.id, "flow": row.flow})
    return LoadedRun(pos, 0)


def _timers(pos: Position) -> list[NewTimer]:
    """Timers that the lost records consumed are set again; the others still exist."""
    waiting = [e for e in pos.execs.values() if e.token and e.phase in ("delay", "children")]
    armed = [NewTimer(e.token, e.wake_at) for e in waiting if e.wake_at is not None]
    asleep = [sub for e in pos.execs.values() for sub in e.subs.values() if not sub.done]
    return armed + [NewTimer(sub.hold, sub.value) for sub in asleep if sub.hold in pos.timers]


def _typed(error: CheckpointCorruptError, lost: list[Record], what: str) -> CheckpointCorruptError:
    steps = [
        f"{shown_name(r.scope + r.node)} ({r.effect or 'pure'}, record {r.seq})"
        for r in lost
        if r.kind == Kind.step
    ]
    named = f"lost: {', '.join(steps)}" if steps else "no settled step is lost"
    return CheckpointCorruptError(
        f"{error.message} {named}; {what}.", hint=error.hint, **{**error.facts, "lost": steps}
    )


def _info(error: HoldfastError) -> ErrorInfo:
    return ErrorInfo(error.code, type(error).__name__, error.message)


async def _stop(services: RunServices, claim: Claim, codec: RecordCodec, error: HoldfastError) -> None:
    """The run fails at its last record: its holds do not change, and when the damage is repaired it may be
    resumed (RM-3)."""
    pos = Position(claim.run.id)
    pos.head, pos.at = claim.run.head, claim.run.updated_at
    info = ErrorInfo(STATE_MISSING, type(error).__name__, error.message)
    side = Side(status=RunStatus.failed, error=f"{info.type}: {info.message} [{info.code}]")
    noted = _record(pos, claim, AttemptBody(DAMAGED, info), Kind.attempt, DAMAGED, side)
    about = {"run": claim.run.id, "flow": claim.run.flow, "seq": pos.head}
    log.error("run %s failed: its state cannot be read: %s", claim.run.id, error.message, extra=about)
    await _settle(services, claim, codec, [noted])


def _record(
    pos: Position, claim: Claim, body: Body, kind: Kind, outcome: str, side: Side | None
) -> tuple[Record, Body]:
    pos.head += 1
    record = Record(
        pos.head, kind, pos.at, claim.lease.term, "", 0, 0, "", "", outcome, False, 0, b"", b"", side
    )
    return record, body


async def _settle(
    services: RunServices, claim: Claim, codec: RecordCodec, drafts: list[tuple[Record, Any]]
) -> None:
    records: list[Record] = []
    for record, body in drafts:
        await services.blobs.of(claim.run.tenant).put(codec.encode(record, body, claim.lease.term))
        records.append(record)
    (answer,) = await services.store.settle([RunBatch(claim.lease, records)])
    if answer.refusal is not None:
        raise LeaseLostError(f"lost the lease on run {claim.run.id} to another worker", run=claim.run.id)
