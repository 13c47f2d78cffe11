"""Claiming one run for a caller that drives it itself, where its limits may make it wait."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import LimitReachedError, RunBusyError
from holdfast.runs.access import RunAccess
from holdfast.runs.admission import held_limits
from holdfast.store.protocols import Claim, RunRow
from holdfast.types.ids import RunId
from holdfast.types.limit_rows import root_of
from holdfast.types.status import ENDED

WaitCallback = Callable[[LimitReachedError], None]


async def claim_in_turn(
    service: RunAccess, run: RunId, *, created: bool = False, waits: WaitCallback | None = None
) -> Claim | RunRow:
    """The run, as soon as its gate lets it pass. Its row, where somebody else took it out of the line and
    brought it to its end or to its next wait. `created`: it is in line, and nobody knows of it but us.

    Raises RunBusyError where somebody has it already; GateShutError where it would wait for a place that the
    run has which it is started from."""
    in_line = created
    while True:
        try:
            return await service.runtime.claim(run)
        except LimitReachedError as error:
            await _require_no_circle(service, run, error, created=created)
            in_line = True
            if waits is not None:
                waits(error)
        except RunBusyError:
            if not in_line:
                raise
        row = await service.get(run)
        if row.status in ENDED or (row.worker is None and row.ready_at is None):
            return row
        await service.store.wait_change(service.runtime.settings.poll)


async def _require_no_circle(
    service: RunAccess, run: RunId, error: LimitReachedError, *, created: bool
) -> None:
    gate = str(error.facts["gate"])
    if root_of(gate) not in held_limits() or not error.facts["full"]:
        return
    # Somebody may have taken it just now; then it comes to its end without us.
    if created and not await service.store.delete_run(run):
        return
    raise LimitReachedError(
        f"a run of flow {error.facts['flow']!r} would wait for a place at {root_of(gate)} that the run has "
        "which starts it.",
        hint="Make it a sub-flow, which is a part of the same run, or raise the limit.",
        **error.facts,
    ) from None
