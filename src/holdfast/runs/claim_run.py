"""Claims one run for a caller that drives it itself, if its limits may make it wait."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import LimitReachedError, RunBusyError
from holdfast.runs.concurrency_limits.run_limits import held_limits
from holdfast.runs.service_protocol import RunAccess
from holdfast.store.rows import Claim, RunRow
from holdfast.types.concurrency_limits import is_entity, root_of
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED

WaitCallback = Callable[[LimitReachedError], None]


async def claim_in_turn(
    service: RunAccess, run: RunId, *, created: bool = False, waits: WaitCallback | None = None
) -> Claim | RunRow:
    """The run, as soon as its limits admit it. Its row, if another worker claimed it meanwhile and brought it
    to its end or to its next wait. `created`: it is queued, and only this caller knows of it. Raises
    RunBusyError if another worker has it already; LimitReachedError if it would wait for the run that starts
    it, which counts against the same limit."""
    queued = created
    while True:
        try:
            return await service.runtime.claim(run)
        except LimitReachedError as error:
            await _require_no_circle(service, run, error, created=created)
            queued = True
            if waits is not None:
                waits(error)
        except RunBusyError:
            if not queued:
                raise
        row = await service.get(run)
        # Without a ready time it waits for a person or a timer: another worker has advanced it that far.
        if row.status in ENDED or (row.worker is None and row.ready_at is None):
            return row
        await service.store.wait_change(service.runtime.settings.poll)


async def _require_no_circle(
    service: RunAccess, run: RunId, error: LimitReachedError, *, created: bool
) -> None:
    gate = str(error.facts["gate"])
    # Of an entity it waits for one run, and not for a place of the flow.
    limit = gate if is_entity(gate) else root_of(gate)
    # A limit that is only reached by its rate opens with time, so waiting for it ends.
    if limit not in held_limits() or not error.facts["full"]:
        return
    # A worker may have claimed it just now; then that worker brings it to its end.
    if created and not await service.store.delete_run(run):
        return
    raise LimitReachedError(
        f"a run of flow {error.facts['flow']!r} would wait for the limit {limit}, which the run that "
        "starts it has used up.",
        hint="Make it a sub-flow, which is a part of the same run, or raise the limit.",
        **error.facts,
    ) from None
