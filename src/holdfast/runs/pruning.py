"""Retention: old records of ended runs go, and blobs that nobody refers to any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.fold import HISTORY
from holdfast.errors import RunBusyError
from holdfast.model.bodies import SnapshotBody
from holdfast.model.snapshot import dump_position
from holdfast.runs.blobs import refs_in
from holdfast.runs.pictures import Folded, fold_to, lineage_of
from holdfast.store.base import RunFilter
from holdfast.types.record import Kind, Record, Side
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from holdfast.runs.sealing import Sealer
    from holdfast.runs.service import RunService
    from holdfast.store.base import RunRow

KEEP = 10
GRACE = 24 * 3600.0
BATCH = 500


async def prune(service: RunService, run: str, *, keep: int = KEEP) -> int:
    """Keep the last `keep` checkpoints of an ended run. Answers how many records went.

    The oldest kept checkpoint is rewritten as a self-contained snapshot, with the history that led to it,
    so that nothing of the picture is lost but the records. Raises RunBusyError for a run that has not ended.
    """
    row = await service.get(run)
    if row.status not in ENDED:
        raise RunBusyError(f"run {row.id} is {row.status}: a run is pruned after it has ended.", run=row.id)
    horizon = await _horizon(service, row, max(1, keep))
    if horizon is None or horizon <= row.horizon:
        return 0
    # Values of types that are not loaded here could not be written back as they were.
    service.runtime.program_for(row.version, row.flow)
    folded = await fold_to(service, row, horizon)
    replace = _snapshot(folded, folded.reader.sealer)
    return await service.store.prune(row.id, horizon=horizon, replace=replace)


async def _horizon(service: RunService, row: RunRow, keep: int) -> int | None:
    listed = await service.store.listed(row.id, limit=keep)
    if len(listed) < keep:
        return None
    horizon = listed[-1].seq
    records = await service.store.read(row.id, first=horizon + 1, payloads=False)
    # A later snapshot may name records before the horizon (D-27): then the horizon is that snapshot.
    return max((r.seq for r in records if r.kind == Kind.snapshot), default=horizon)


def _snapshot(folded: Folded, sealer: Sealer) -> Record:
    """The record at the horizon, its columns as they are, its payload the whole position."""
    old = folded.record
    position: dict[str, Any] = {
        **dump_position(folded.pos, whole=True, by_ref=True),
        HISTORY: folded.history.dump(),
        "lineage": lineage_of(folded.first),
    }
    record = Record(
        old.seq,
        Kind.snapshot,
        old.at,
        old.term,
        old.node,
        old.visit,
        old.attempt,
        old.scope,
        str(old.effect),
        str(old.outcome),
        old.listed,
        0,
        b"",
        b"",
    )
    sealer.seal(record, SnapshotBody(position), old.term)
    # Its event numbers were given out long ago: a cursor must still be able to pass them.
    record.events = old.events
    record.side = Side(blobs=sorted({ref.digest for ref in refs_in(position)}))
    return record


class Cleaned(msgspec.Struct):
    """What a clean-up did. `skipped`: runs of flow versions that are not loaded here, left as they are."""

    runs: int = 0
    records: int = 0
    skipped: int = 0


async def clean(
    service: RunService, *, keep: int = KEEP, older_than: float | None = None, flow: str | None = None
) -> Cleaned:
    """Retention by count and by age, over the ended runs (of one flow).

    Those that ended more than `older_than` seconds ago are deleted, the others keep their last `keep`
    checkpoints. A run that has not ended is left alone.
    """
    done = Cleaned()
    where = RunFilter(status=tuple(ENDED), flow=flow)
    after: tuple[int, int] | None = None
    while rows := await service.store.list_runs(where, after=after, limit=BATCH):
        after = (rows[-1].created_at, rows[-1].key)
        for row in rows:
            await _clean(service, row, keep, older_than, done)
    return done


async def _clean(
    service: RunService, row: RunRow, keep: int, older_than: float | None, done: Cleaned
) -> None:
    ended = row.ended_at or row.updated_at
    if older_than is not None and ended < service.store.now() - int(older_than * 1e6):
        done.runs += await service.store.delete_run(row.id)
    elif row.version in service.runtime.programs:
        done.records += await prune(service, row.id, keep=keep)
    else:
        done.skipped += 1


async def collect_blobs(service: RunService, *, grace: float = GRACE) -> int:
    """Delete blobs that no run refers to and that are older than the grace period (D-37). Answers how many.

    Condemned first, then the object, then the row: a settle that names one meanwhile puts it again.
    """
    older_than = service.store.now() - int(grace * 1e6)
    objects = service.runtime.desk.objects
    collected = 0
    while digests := await service.store.condemn_blobs(older_than=older_than, limit=BATCH):
        if objects is not None:
            for digest in digests:
                await objects.delete(digest)
        await service.store.drop_blobs(digests)
        collected += len(digests)
    return collected
