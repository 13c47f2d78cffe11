"""What waits for a person, over all runs: the query behind "my pending runs" (R-9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.model.breaks import TYPE as BREAKPOINT
from holdfast.types.hold import HoldRow
from holdfast.types.ids import CheckpointId, RunId
from holdfast.types.status import HoldStatus

if TYPE_CHECKING:
    from holdfast.runs.service import RunService

ALL = 1_000_000


class PendingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One open question and the run that waits for it. `checkpoint` is also the id of the hold."""

    run: RunId
    flow: str
    thread: str | None
    checkpoint: CheckpointId
    node: str
    prompt: str
    assignee: str | None
    created_at: int


async def pending_runs(
    service: RunService, *, tenant: str | None, thread: str | None, limit: int
) -> list[PendingRun]:
    """Newest question first. `limit` 0: all."""
    holds = await service.store.holds(status=HoldStatus.pending, tenant=tenant, limit=ALL)
    found: list[PendingRun] = []
    for hold in sorted(holds, key=lambda hold: (hold.created_at, hold.seq), reverse=True):
        row = await service.store.get_run(hold.run)
        # Nobody can answer what imported history asked.
        if row is None or row.read_only or (thread is not None and row.thread != thread):
            continue
        if hold.type == BREAKPOINT:
            continue  # a stop of whoever debugs, not a question to people (BP-8)
        found.append(
            PendingRun(
                run=row.id,
                flow=row.flow,
                thread=row.thread,
                checkpoint=CheckpointId(hold.id),
                node=hold.node,
                prompt=hold.prompt,
                assignee=hold.assignee,
                created_at=hold.created_at,
            )
        )
        if len(found) == limit:
            break
    return found


async def open_breakpoints(
    service: RunService, *, run: str | None, flow: str | None, tenant: str | None
) -> list[HoldRow]:
    """Where runs stand still for whoever debugs them, oldest first. Imported history stands nowhere."""
    only = None if run is None else (await service.get(run, tenant=tenant)).id
    holds = await service.store.holds(run=only, status=HoldStatus.pending, tenant=tenant, limit=ALL)
    found = [h for h in holds if h.type == BREAKPOINT and flow in (None, h.flow)]
    rows = {h.run: await service.store.get_run(h.run) for h in found}
    return [h for h in found if (row := rows[h.run]) is not None and not row.read_only]
