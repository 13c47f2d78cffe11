"""The classic checkpoint store (save, get, load, latest, list, delete, fork) as a view of the journal (D-4).

Nothing here changes a record: docs/adr/0008-checkpoint-store-adapter.md says what that means for `save`
and `delete`.
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, Any

from holdfast.errors import CheckpointNotFoundError, ConflictError
from holdfast.runs.fork.fork import fork
from holdfast.runs.history import checkpoints
from holdfast.runs.prune_run import prune
from holdfast.store.rows import RunFilter
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.checkpoint.checkpoint import CheckpointMeta
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow
    from holdfast.types.terms import Actor

Plain = dict[str, Any]
"""A checkpoint in the published interface."""

PAGE = 100


class CheckpointView:
    """Checkpoints as plain dicts, for tools that only know the published interface. `tenant`: only runs of
    this one; those of others do not exist."""

    def __init__(self, service: RunService, tenant: str | None = None) -> None:
        self._service = service
        self._tenant = tenant

    async def save(self, checkpoint: Plain) -> None:
        """Saving what is stored already changes nothing. Raises ConflictError for anything else: a history is
        not rewritten, it is forked."""
        name = str(checkpoint.get("id", ""))
        known = await self.get(name)
        if known is None or known != checkpoint:
            what = "differs from the stored one" if known else "is not stored"
            raise ConflictError(
                f"checkpoint {name!r} {what}.",
                hint="Checkpoints are written by the run. To continue from a changed one, fork with a patch.",
            )

    async def get(self, checkpoint_id: str) -> Plain | None:
        """Exactly this one, or None."""
        try:
            row, seq = await self.find(checkpoint_id)
            return (await self._service.checkpoint(row.id, seq)).as_interface()
        except CheckpointNotFoundError:
            return None

    async def find(self, checkpoint_id: str) -> tuple[RunRow, int]:
        """Its run and record. Raises CheckpointNotFoundError."""
        row, seq = await checkpoints.resolve(self._service, checkpoint_id)
        if self._tenant not in (None, row.tenant):
            raise CheckpointNotFoundError(
                f"there is no checkpoint {checkpoint_id!r} in this store.", checkpoint=checkpoint_id
            )
        return row, seq

    async def _run(self, run_id: str) -> RunRow | None:
        row = await self._service.store.get_run(checkpoints.RunId(run_id))
        return None if row is None or self._tenant not in (None, row.tenant) else row

    async def load(self, run_id: str, node_id: str | None = None) -> Plain | None:
        """The newest of a run (and node), or None."""
        if await self._run(run_id) is None:
            return None
        try:
            return (await self._service.latest(run_id, node_id)).as_interface()
        except CheckpointNotFoundError:
            return None

    async def latest(self, run_id: str) -> Plain | None:
        return await self.load(run_id)

    async def list(self, graph_id: str, *, run_id: str | None = None, limit: int = 0) -> list[Plain]:
        """Metadata only, newest first, of one flow version; `limit` 0 or less: all."""
        rows = [await self._run(run_id)] if run_id else await self._runs(graph_id)
        known = [row for row in rows if row is not None]
        if limit > 0:
            # A checkpoint is never newer than its run: the newest ones are of the runs that changed last.
            known = nlargest(limit, known, key=lambda row: row.updated_at)
        found: list[CheckpointMeta] = []
        for row in known:
            found += await self._service.checkpoints(row.id, limit=max(0, limit))
        found = [meta for meta in found if meta.version == graph_id]
        found.sort(key=lambda meta: (meta.at, meta.seq), reverse=True)
        return [_metadata(meta) for meta in (found[:limit] if limit > 0 else found)]

    async def _runs(self, graph_id: str) -> list[RunRow]:
        found: list[RunRow] = []
        after: tuple[int, int] | None = None
        where = RunFilter(version=graph_id, tenant=self._tenant)
        while rows := await self._service.store.list_runs(where, after=after, limit=PAGE):
            found += rows
            after = (rows[-1].created_at, rows[-1].key)
        return found

    async def delete(self, checkpoint_id: str) -> None:
        """Does nothing if there is none. The oldest checkpoint of an ended run is deleted, with the records
        before the next one; any other is part of a history that is still needed: ConflictError."""
        try:
            row, seq = await self.find(checkpoint_id)
        except CheckpointNotFoundError:
            return
        newer = [meta.seq for meta in await self._service.checkpoints(row.id, limit=0) if meta.seq > seq]
        older = await self._service.checkpoints(row.id, limit=1, before=seq)
        if row.status not in ENDED or older or not newer:
            raise ConflictError(
                f"checkpoint {checkpoint_id!r} is in the middle of a history.",
                hint="Only the oldest records of an ended run can be deleted: use prune(run, keep=...).",
            )
        await prune(self._service, row.id, keep=len(newer))

    async def fork(
        self,
        checkpoint_id: str,
        patch: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
        actor: Actor | None = None,
        repeat_effects: bool = False,
    ) -> str:
        """The id of the new run. `by`: who asks for it; `actor`: the caller of a server, who takes
        along only decisions that they may. Raises CheckpointNotFoundError."""
        row, seq = await self.find(checkpoint_id)
        made = await fork(
            self._service,
            row.id,
            seq,
            patch=patch,
            started_by=by,
            actor=actor,
            repeat_effects=repeat_effects,
        )
        return made.id


def _metadata(meta: CheckpointMeta) -> Plain:
    return {
        "id": meta.id,
        "runId": meta.run,
        "graphId": meta.version,
        "nodeId": meta.node,
        "timestamp": meta.at // 1000,
        "stateSize": meta.state_size,
        "hasMemorySnapshot": meta.has_memory_snapshot,
    }
