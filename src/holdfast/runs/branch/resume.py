"""Resuming a run on request from outside: the run itself, a fork of it, or a rewind (R-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import KeyReusedError
from holdfast.runs.branch.fork import fork
from holdfast.runs.history import checkpoints
from holdfast.types.ids import RunId, derived_id, run_prefix
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.runs.access import RunAccess
    from holdfast.store.rows import RunRow

_PARKED = (RunStatus.failed, RunStatus.pending_input, RunStatus.waiting, RunStatus.resumable)


async def resume(
    service: RunAccess,
    row: RunRow,
    *,
    checkpoint: str | int | None = None,
    given: Any = None,
    mode: str = "resume",
    accept_loss: bool = False,
    key: str | None = None,
    by: str | None = None,
) -> tuple[RunRow, bool]:
    """(the run that continues, whether it is a new one). Any worker that serves the flow claims it.

    `mode`: `resume` resumes the run itself where that is meant (its latest checkpoint, no input), else
    in a fork, so that its history stays; `fork` and `rewind` always do that. A run that has completed or was
    cancelled stays so. Raises CheckpointNotFoundError for a checkpoint that is not this run's."""
    _, seq = await checkpoints.resolve_run(service, row.id, checkpoint)
    if mode == "resume" and seq is None and given is None:
        if row.status in _PARKED:
            row = await service.request_resume(row.id, accept_loss=accept_loss)
        return row, False
    return await branch(service, row, seq, given=given, supersede=mode == "rewind", key=key, by=by)


async def branch(
    service: RunAccess,
    row: RunRow,
    seq: int | None,
    *,
    patch: Mapping[str, Any] | None = None,
    given: Any = None,
    supersede: bool = False,
    key: str | None = None,
    by: str | None = None,
) -> tuple[RunRow, bool]:
    """A fork or rewind from a record, or from where the run stands; once under one `key`: the same request
    again gives the same run. `by`: who asks, and so is its initiator: what they changed they must not approve
    themselves where initiators are excluded. Raises KeyReusedError where the key stands for a branch of
    another run."""
    run = None if key is None else RunId(derived_id("branch", row.tenant, key))
    known = None if run is None else await service.store.get_run(run)
    if known is not None:
        if run_prefix(known.forked_from or "") != run_prefix(row.id):
            raise KeyReusedError(f"the key {key!r} stands for a branch of another run.", run=known.id)
        return known, False
    at = row.head if seq is None else seq
    made = await fork(
        service, row.id, at, patch=patch, given=given, supersede=supersede, run_id=run, started_by=by
    )
    return made, True
