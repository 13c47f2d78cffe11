"""Prune one ended run: its last checkpoints are kept, older records are deleted. Or delete it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.read_without_code import OpaqueRegistry
from holdfast.checkpoint.run_history import HISTORY
from holdfast.errors import CheckpointCorruptError, FlowNotFoundError, RunBusyError
from holdfast.model.fingerprint import decode_graph
from holdfast.model.graph import Graph
from holdfast.model.record_bodies import SnapshotBody
from holdfast.model.snapshot import dump_position, left_in_journal
from holdfast.runs.blobs import refs_in
from holdfast.runs.driver.load import load
from holdfast.runs.events import RunReader
from holdfast.runs.hold_states import delete_states, state_keys
from holdfast.runs.record_codec import RecordCodec
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.record import Kind, Record, Side
from holdfast.types.retention import KEEP
from holdfast.types.status import ENDED, RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.runs.history.checkpoints import FoldedRun
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow


_WHY = {
    RunStatus.pending: "it has not started",
    RunStatus.running: "it is being advanced",
    RunStatus.waiting: "it waits for a time or an event",
    RunStatus.pending_input: "it waits for an answer",
    RunStatus.resumable: "it will be resumed",
}


async def prune(service: RunAccess, run: str, *, keep: int = KEEP) -> int:
    """Keep the last `keep` checkpoints of an ended run. Returns the number of deleted records.

    The oldest kept checkpoint is rewritten as a self-contained snapshot, with the history that led to it, so
    that only the records are lost. Needs no code of the flow. Raises RunBusyError for a run that has not
    ended.
    """
    row = await service.get(run)
    require_ended(row)
    horizon = await horizon_for(service, row, max(1, keep))
    if horizon is None or horizon <= row.horizon:
        return 0
    reader = await _exact_reader(service, row)
    from holdfast.holds.forms.attached_files import files_of
    from holdfast.runs.history.checkpoints import fold_to

    folded = await fold_to(service, row, horizon, reader)
    replace = _snapshot(folded)
    later = await _later_snapshots(service, row, horizon, reader)
    kept = await _named_after(service, row, horizon, reader)
    # Files that people attached to answers are named by the holds, not by the records.
    files = await files_of(service.store, row.id)
    named = {digest for record in (replace, *later) if record.side for digest in record.side.blobs}
    blobs = sorted(kept.union(named, files))
    gone = await service.store.prune(
        row.id, horizon=horizon, replace=replace, later=later, ended=True, blobs=blobs
    )
    # Another worker has pruned it, which is fine, or it was resumed meanwhile, which the caller has to know.
    if not gone:
        require_ended(await service.get(row.id))
    return gone


async def delete(service: RunAccess, run: str, *, by: str) -> None:
    """Delete an ended run, or imported history, with its journal, events, holds and blobs. The audit keeps
    its entries, and gets one of the deletion. Raises RunBusyError for a run that has not ended."""
    row = await service.get(run)
    if not row.read_only:
        require_ended(row, "deleted")
    # Written first: the audit may name a deletion that failed, but none is missing from it.
    data = canonical({"flow": row.flow, "status": str(row.status)})
    entry = NewAudit(at=service.store.now(), actor=by, action="run_deleted", run=row.id, data=data)
    await service.store.append_audit(row.tenant, [entry])
    states = await state_keys(service, row.id)
    if await service.store.delete_run(row.id, ended=not row.read_only):
        await delete_states(service, row.tenant, states)
        from holdfast.holds.policies.shadow import delete_shadows

        await delete_shadows(service.store, row.tenant, row.id)
        from holdfast.runs.steer_messages import SteerMessages

        await SteerMessages(service.store, row.tenant, row.id).remove_all()
    else:
        # It was resumed meanwhile; or another caller has deleted it, and there is no such run.
        require_ended(await service.get(row.id), "deleted")


def require_ended(row: RunRow, what: str = "pruned") -> None:
    if row.status not in ENDED:
        raise RunBusyError(
            f"run {row.id} is {run_label(row.status)}: {_WHY.get(row.status, 'it has not ended')}. "
            f"A run is {what} only after it has ended.",
            hint="Wait for its end, or cancel it first.",
            run=row.id,
        )


async def horizon_for(service: RunAccess, row: RunRow, keep: int) -> int | None:
    listed = await service.store.checkpoint_records(row.id, limit=keep)
    return None if len(listed) < keep else listed[-1].seq


async def _exact_reader(service: RunAccess, row: RunRow) -> RunReader:
    """Values of types that are not loaded here are kept encoded, so that they can be written back."""
    program = service.runtime.programs.get(row.version)
    if program is not None and not row.migrated:
        return RunReader(program.graph, service.runtime.codec_for(program, row.tenant), True)
    stored = await service.store.flow(row.flow, row.version)
    if stored is None:
        raise FlowNotFoundError(
            f"version {row.version} of flow {row.flow!r} is neither loaded here nor stored.",
            flow=row.flow,
            version=row.version,
        )
    types = program.all_types() if program is not None else ()
    graph = Graph(decode_graph(stored.graph))
    return RunReader(graph, RecordCodec(OpaqueRegistry(*types), graph.secrets, row.tenant), True)


def _snapshot(folded: FoldedRun) -> Record:
    """The record at the horizon: its columns unchanged, its payload the whole position."""
    from holdfast.runs.history.checkpoints import lineage_of

    position: dict[str, Any] = {
        **dump_position(folded.pos, whole=True, by_ref=True),
        HISTORY: folded.history.dump(),
        "lineage": lineage_of(folded.first),
    }
    return _rewritten(folded.record, position, folded.reader.codec)


def _rewritten(old: Record, position: dict[str, Any], codec: RecordCodec) -> Record:
    record = msgspec.structs.replace(old, kind=int(Kind.snapshot), payload=b"", digest=b"", size=0)
    codec.encode(record, SnapshotBody(position), old.term)
    # Its event numbers were assigned long ago: a cursor must still be able to pass them.
    record.events = old.events
    record.side = Side(blobs=sorted({ref.digest for ref in refs_in(position)}))
    return record


async def _later_snapshots(service: RunAccess, row: RunRow, horizon: int, reader: RunReader) -> list[Record]:
    """Snapshots after the horizon whose lists are in records up to it (D-27), with these lists written
    out."""
    records = await service.store.read(row.id, first=horizon + 1, payloads=False)
    found: list[Record] = []
    for seq in [record.seq for record in records if record.kind == Kind.snapshot]:
        (old,) = await service.store.read(row.id, first=seq, last=seq)
        try:
            given = reader.codec.decode(old).position
        except CheckpointCorruptError:
            continue  # it cannot be read now either
        if any(first <= horizon for first, _ in left_in_journal(given)):
            loaded = await load(
                service.store, reader.codec, reader.graph, row.id, blobs=service.runtime.blobs, upto=seq
            )
            whole = dump_position(loaded.pos, whole=True, by_ref=True)
            found.append(_rewritten(old, {**given, **whole}, reader.codec))
    return found


async def _named_after(service: RunAccess, row: RunRow, horizon: int, reader: RunReader) -> set[bytes]:
    """The blobs that the kept records refer to. If a record cannot be read, all blobs of the run are kept."""
    records = await service.store.read(row.id, first=horizon + 1)
    try:
        bodies = [reader.codec.decode(record) for record in records]
    except CheckpointCorruptError:
        found = await service.store.history(row.id)
        return set(found.blobs if found else ())
    return {ref.digest for body in bodies for ref in refs_in(msgspec.structs.astuple(body))}
