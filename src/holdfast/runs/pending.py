"""What waits for a person, over all runs: the query behind "my pending runs" (R-9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

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
