"""Cancel a run: its worker is asked to stop it, and its open holds are withdrawn."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.errors import (
    RunEndedError,
)
from holdfast.holds.actions.close import cancelled
from holdfast.runs.pending_holds import ALL
from holdfast.store.errors import require_live
from holdfast.store.protocols import Store
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess

REASON: Final = "the run was cancelled"


async def cancel(service: RunAccess, run: str, *, reason: str, by: str) -> RunRow:
    """Ask a run to stop. The worker that has it does so; without one, any worker claims it and does."""
    row = await service.get(run)
    require_live(row)
    if row.status is RunStatus.cancelled:
        # A cancel that was interrupted is completed by the next one.
        await _cancel_children(service, row.id, reason=reason, by=by)
        return row
    body = msgspec.json.encode({"reason": reason, "by": by})
    event = EventRow(0, service.store.now(), "run.cancel_requested", body)
    # A dead run has failed, and can still be cancelled: that is how an operator discards it.
    over = row.status in ENDED and not row.dead
    # One message, however often it is requested.
    if over or not await service.store.send(row.id, "cancel", body, dedupe="cancel", event=event):
        row = await service.get(run)
        if row.status in ENDED and row.status is not RunStatus.cancelled:
            raise RunEndedError(f"run {row.id} has ended ({row.status}).", run=row.id, status=row.status)
    await withdraw_holds(service.store, row.id, by=by)
    await _cancel_children(service, row.id, reason=reason, by=by)
    return await service.get(run)


async def _cancel_children(service: RunAccess, run: RunId, *, reason: str, by: str) -> None:
    """Those that its scripts have started, with theirs."""
    where = RunFilter(parent_run=run, status=tuple(status for status in RunStatus if status not in ENDED))
    for child in await service.store.list_runs(where, after=None, limit=ALL):
        with suppress(RunEndedError):  # it ended meanwhile
            await cancel(service, child.id, reason=reason, by=by)


async def withdraw_holds(store: Store, run: RunId, *, by: str) -> None:
    """A decision after this would be accepted and lost. The run needs no inbox row about it: the first
    message it reads is the cancellation, which closes everything that changed meanwhile."""
    for row in await store.holds(run=run, status=HoldStatus.pending, limit=ALL):
        made = cancelled(row, by=by, reason=REASON, at=store.now())
        await store.change_hold(msgspec.structs.replace(made, mail=None))
