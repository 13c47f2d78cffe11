"""Resume a run: the run itself, or a branch of it for an older checkpoint or another input (R-1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.runs.concurrency_limits.run_limits import require_entity_free
from holdfast.runs.create import break_places
from holdfast.runs.engine_moves import resume_on_engine
from holdfast.runs.events import reader_of
from holdfast.store.errors import require_live
from holdfast.store.lost_history import require_whole
from holdfast.store.rows import RunRow
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.types.terms import Actor

_ANSWERED = (HoldStatus.resolved, HoldStatus.expired)
_PARKED = (RunStatus.failed, RunStatus.pending_input, RunStatus.waiting, RunStatus.resumable)


async def request_resume(
    service: RunAccess,
    run: str,
    *,
    breaks: Sequence[str] | None = None,
    no_breaks: bool = False,
    accept_loss: bool = False,
) -> RunRow:
    """A failed run resumes; a parked or abandoned one is made claimable; a finished one does not change.
    `breaks`, `no_breaks` and `accept_loss`: as for `RunService.request_resume`."""
    row = await service.get(run)
    require_live(row)
    if not accept_loss:
        require_whole(row)
    if row.status in (RunStatus.completed, RunStatus.cancelled):
        return row
    await require_entity_free(service.store, row)
    payload = b""
    if breaks or no_breaks:
        graph = (await reader_of(service, row)).graph
        payload = msgspec.json.encode({"breaks": break_places(graph, breaks or ()), "off": no_breaks})
    sent = await resume_on_engine(service, row, payload)
    if sent is None:
        sent = await service.store.send(row.id, "resume", payload)
    row = await service.get(run)
    if not sent:
        # Another run of its entity became live meanwhile.
        await require_entity_free(service.store, row)
    return row


async def resume_point(
    service: RunAccess, ref: str, checkpoint: str | int | None = None
) -> tuple[RunRow, int | None]:
    """(run, None) if the run itself is to be resumed; else (run, seq): a fork of that record is.

    Besides the latest checkpoint, that is the question that was just answered, however far the run has come
    since: a worker may have taken up the answer before the caller asks for the resume. A question is older
    once the run asked another one after its decision."""
    from holdfast.runs.history import checkpoints

    row, seq = await checkpoints.resolve_run(service, ref, checkpoint)
    if seq is None or not await _is_just_answered(service, row, seq):
        return row, seq
    return row, None


async def _is_just_answered(service: RunAccess, row: RunRow, seq: int) -> bool:
    holds = await service.holds(row.id, open_only=False)
    here = next((hold for hold in holds if hold.seq == seq), None)
    if here is None or here.status not in _ANSWERED or here.resolved_at is None:
        return False
    decided_at = here.resolved_at
    return not any(hold.seq > seq and hold.created_at >= decided_at for hold in holds)


async def resume(
    service: RunAccess,
    row: RunRow,
    *,
    checkpoint: str | int | None = None,
    given: Any = None,
    mode: str = "resume",
    accept_loss: bool = False,
    key: str | None = None,
    actor: Actor | None = None,
    repeat_effects: bool = False,
) -> tuple[RunRow, bool]:
    """(the run that continues, whether it is a new one). Any worker that serves the flow claims it.

    `mode`: `resume` resumes the run itself for its latest checkpoint, or the question that was just answered,
    without input; else a fork of it, so that its history stays; `fork` and `rewind` always make a new run. A
    run that has completed or was cancelled does not change. Raises CheckpointNotFoundError for a checkpoint
    of another run."""
    from holdfast.runs.fork.fork import fork_once
    from holdfast.runs.history import checkpoints

    if mode == "resume" and given is None:
        _, seq = await resume_point(service, row.id, checkpoint)
        if seq is None:
            if row.status in _PARKED:
                row = await service.request_resume(row.id, accept_loss=accept_loss)
            return row, False
    else:
        _, seq = await checkpoints.resolve_run(service, row.id, checkpoint)
    return await fork_once(
        service,
        row,
        seq,
        given=given,
        supersede=mode == "rewind",
        key=key,
        actor=actor,
        repeat_effects=repeat_effects,
    )
