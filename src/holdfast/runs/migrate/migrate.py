"""Migrates runs to another version of their flow, one by one: by names, with their holds, in one write
(D-34).

A run is folded on its present graph, changed in memory to the new one, and checked. What does not fit is
reported, and the run is not changed. What fits is written as one snapshot record, under a lease, with the
run's version and the places of its holds in the same transaction: a crash leaves the old or the new.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint import Blob, pack, spill
from holdfast.checkpoint.read_without_code import OpaqueRegistry
from holdfast.errors import HoldfastError, LeaseLostError
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATED, MIGRATION
from holdfast.model.position import Position
from holdfast.model.record_bodies import SnapshotBody
from holdfast.model.snapshot import dump_position
from holdfast.runs.blobs import refs_in
from holdfast.runs.driver.load import load
from holdfast.runs.history.versions import reader_for
from holdfast.runs.migrate.blockers import MigrationBlocker
from holdfast.runs.migrate.remap import RemapResult, remap
from holdfast.runs.migrate.state import migrate_state
from holdfast.runs.record_codec import RecordCodec
from holdfast.types.ids import HoldId, RunId
from holdfast.types.record import Kind, Park, Record, RunBatch, Side, VersionChange
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.model.program import Program
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import Claim, RunRow

_STAYS = frozenset({RunStatus.waiting, RunStatus.pending_input})
_ALL = 1_000_000
_TRIES = 10


class MigrationPlan(msgspec.Struct, kw_only=True):
    """The result of migrating one run. With misfits nothing of it is ever written."""

    row: Any
    misfits: list[MigrationBlocker]
    pos: Position
    moved: RemapResult
    note: dict[str, Any] = {}
    record: Record | None = None
    blobs: list[Blob] = []


async def plan(service: RunAccess, row: RunRow, program: Program, *, force: bool = False) -> MigrationPlan:
    """The run as it would be in `program`. Reads only; runs the declared state functions."""
    try:
        old = (await reader_for(service, row, row.version)).graph
        # Values of types that the new version knows are decoded, others are kept unchanged.
        codec = RecordCodec(OpaqueRegistry(*program.all_types()), program.graph.secrets, row.tenant)
        loaded = await load(service.store, codec, old, row.id, blobs=service.runtime.blobs)
        await service.runtime.blobs.of(row.tenant).materialise(loaded.pos, codec.registry)
    except (HoldfastError, TypeError, ValueError) as error:
        reason = error.message if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
        broken = MigrationBlocker("", f"it cannot be read: {reason}", "fix that first")
        return MigrationPlan(row=row, misfits=[broken], pos=Position(row.id), moved=RemapResult(misfits=[]))
    moved = remap(loaded.pos, old, program, force=force)
    found = MigrationPlan(row=row, misfits=list(moved.misfits), pos=loaded.pos, moved=moved)
    if not found.misfits:
        await _fit(service, found, old, program)
    else:
        # The position and its names are unchanged, so problems of the state are reported as well.
        found.misfits += _state_blockers(found.pos, moved, moved.matches)
    return found


def _state_blockers(pos: Position, moved: RemapResult, paths: Iterable[str]) -> list[MigrationBlocker]:
    return [
        misfit
        for path in paths
        for misfit in migrate_state(pos.scopes[moved.paths.get(path, path)].tree, moved.matches[path], path)
    ]


async def _fit(service: RunAccess, found: MigrationPlan, old: Graph, program: Program) -> None:
    row, moved = found.row, found.moved
    found.misfits += _state_blockers(found.pos, moved, moved.matches)
    found.misfits += await _taken_places(service, row.id, moved)
    found.note = {
        "from": row.version,
        "to": program.version,
        "from_label": old.label,
        "to_label": program.graph.label,
        "renamed": dict(moved.labels),
        "before": row.migrated,
        **({"forced": [misfit.why for misfit in moved.forced]} if moved.forced else {}),
    }
    if found.misfits:
        return
    try:
        codec = service.runtime.codec_for(program, row.tenant)
        _encode_snapshot(found, program, codec, service.store.now())
    except HoldfastError as error:
        found.misfits.append(
            MigrationBlocker("", f"its values cannot be stored in NEW: {error.message}", error.hint or "")
        )


async def _taken_places(service: RunAccess, run: RunId, moved: RemapResult) -> list[MigrationBlocker]:
    """A hold that takes the name of another node must not take the place of one of its questions (D-28)."""
    if not moved.holds:
        return []
    rows = await service.store.holds(run=run, limit=_ALL)
    places = {(h.scope, h.node, h.visit, h.ordinal) for h in rows if h.id not in moved.holds}
    wanted = {h.id: (*moved.holds[h.id], h.visit, h.ordinal) for h in rows if h.id in moved.holds}
    return [
        MigrationBlocker(
            node, f"the name {node!r} was that of another node, which has asked in this run", "choose another"
        )
        for scope, node, visit, ordinal in wanted.values()
        if (scope, node, visit, ordinal) in places
    ]


def _encode_snapshot(found: MigrationPlan, program: Program, codec: RecordCodec, now: int) -> None:
    """The one record of a migration: a self-contained snapshot on the new graph."""
    pos, moved = found.pos, found.moved
    found.blobs = _spilled(pos, codec)
    position = {**dump_position(pos, whole=True, by_ref=True), MIGRATION: found.note}
    seq = pos.head + 1
    holds = tuple((HoldId(hold), *place) for hold, place in moved.holds.items())
    side = Side(
        timers=moved.timers,
        close_timers=moved.close_timers,
        migrated=VersionChange(seq=seq, version=program.version, code=program.code_digest, holds=holds),
    )
    effect = "human" if found.row.status is RunStatus.pending_input else ""
    record = Record(
        seq, Kind.snapshot, max(now, pos.at), 0, "", 0, 0, "", effect, MIGRATED, True, 0, b"", b"", side
    )
    codec.encode(record, SnapshotBody(position), 0)
    side.blobs = sorted({ref.digest for ref in refs_in(position)})
    found.record = record


def _spilled(pos: Position, codec: RecordCodec) -> list[Blob]:
    """Values that became too large for a record are moved to the blob store."""
    blobs: list[Blob] = []
    for scope in pos.scopes.values():
        tree = scope.tree
        for partition, inside in tree.frames[0].over.items():
            for key, value in inside.items():
                if (partition, key) not in tree.refs:
                    _, spilled = spill(pack(value, codec.registry, key))
                    if spilled:
                        tree.refs[(partition, key)] = spilled[0].ref
                        blobs += spilled
    return blobs


# ---------------------------------------------------------------------- writing


async def move(service: RunAccess, row: RunRow, program: Program, *, force: bool = False) -> MigrationPlan:
    """Migrate one run, if it fits; else it is not changed. Raises RunBusyError if another worker has it,
    RunReadOnlyError for imported history, LeaseLostError if the lease was lost meanwhile."""
    found = await plan(service, row, program, force=force)
    if found.misfits:
        return found
    await service.store_flow(program)
    if row.status is RunStatus.failed:
        # It will be resumed, as with `resume`, on the version that it has then.
        await service.request_resume(row.id)
    claim = await service.runtime.claim(row.id)
    try:
        # Planned again under the lease: the run may have advanced since the first plan. The claim has
        # overwritten its status, which the plan needs.
        then = msgspec.structs.replace(claim.run, status=row.status)
        found = await plan(service, then, program, force=force)
        if not found.misfits and then.version != program.version:
            await _write(service, claim, found)
            return found
    except BaseException:
        await _give_back(service, claim, row.status)
        raise
    await _give_back(service, claim, row.status)
    return found


async def _write(service: RunAccess, claim: Claim, found: MigrationPlan) -> None:
    record = found.record
    assert record is not None
    record.term = claim.lease.term
    await service.runtime.blobs.of(claim.run.tenant).put(found.blobs)
    park = await _park(service, claim, found.row.status)
    (answer,) = await service.store.settle([RunBatch(claim.lease, [record], park)])
    if answer.refusal is not None:
        raise LeaseLostError(f"lost the lease on run {claim.run.id} to another worker.", run=claim.run.id)
    if not answer.parked:
        await _give_back(service, claim, found.row.status)


async def _park(service: RunAccess, claim: Claim, before: RunStatus) -> Park:
    """With its old status, if it waits; with unread inbox rows, or during its work, claimable by
    any worker."""
    seen, unread = await service.store.pending(claim.run.id)
    if before in _STAYS and not unread:
        return Park(before, seen)
    return Park(RunStatus.resumable, seen, service.store.now())


async def _give_back(service: RunAccess, claim: Claim, before: RunStatus) -> None:
    """An inbox row may arrive while it is released; then a worker has something to do."""
    for _ in range(_TRIES):
        park = await _park(service, claim, before)
        if await service.store.park(
            claim.lease, status=park.status, inbox_seen=park.inbox_seen, ready_at=park.ready_at
        ):
            return
    # Rows keep arriving: then its lease expires, and any worker claims it.
