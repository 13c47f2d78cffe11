"""What waits for a person, over all runs: the query behind "my pending runs" (R-9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.model.breakpoints import TYPE as BREAKPOINT
from holdfast.store.rows import RunFilter
from holdfast.types.hold import UNASKED, HoldFilter, HoldOrder, HoldRow
from holdfast.types.ids import CheckpointId, RunId
from holdfast.types.schedule import person_behind
from holdfast.types.status import ENDED, HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess

ALL = 1_000_000
PAGE = 200
MAX_SCANNED = 5_000
"""The number of holds that are examined for one page."""

Place = tuple[Any, ...]


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
    service: RunAccess, *, tenant: str | None, thread: str | None, limit: int
) -> list[PendingRun]:
    """Newest question first. `limit` 0: all."""
    found: list[PendingRun] = []
    after: Place | None = None
    while True:
        wanted = PAGE if limit == 0 else min(PAGE, limit - len(found))
        page, after = await pending_page(service, tenant=tenant, thread=thread, after=after, limit=wanted)
        found += page
        if after is None or len(found) == limit:
            return found


async def pending_page(
    service: RunAccess,
    *,
    tenant: str | None,
    thread: str | None = None,
    starter: str | None = None,
    after: Place | None = None,
    limit: int = 50,
) -> tuple[list[PendingRun], Place | None]:
    """At most `limit`, the newest question first, and the cursor to continue after; None: there is no more.
    `starter`: only of runs that they started. A page may be short if few of the examined holds match: no
    request examines more than a fixed number."""
    where = HoldFilter(tenant=tenant, status=(HoldStatus.pending,), not_type=UNASKED)
    if thread is not None:
        where = msgspec.structs.replace(where, run=await _unended(service, tenant, thread))
        if not where.run:
            return [], None
    found: list[PendingRun] = []
    looked_at = 0
    while looked_at < MAX_SCANNED:
        # One more than wanted, to know whether there is more.
        size = PAGE if starter is not None else limit - len(found) + 1
        page = await service.store.list_holds(where, order=HoldOrder.newest, after=after, limit=size)
        for hold, place in page:
            if len(found) == limit:
                return found, after
            if starter is None or person_behind(hold.started_by) == starter:
                found += await _asked(service, hold)
            after = place
        looked_at += len(page)
        if len(page) < size:
            return found, None
    return found, after


async def _unended(service: RunAccess, tenant: str | None, thread: str) -> tuple[str, ...]:
    """The runs of a thread that may wait for a person."""
    where = RunFilter(
        tenant=tenant, thread=thread, status=tuple(each for each in RunStatus if each not in ENDED)
    )
    rows = await service.store.list_runs(where, after=None, limit=ALL)
    return tuple(row.id for row in rows)


async def _asked(service: RunAccess, hold: HoldRow) -> list[PendingRun]:
    row = await service.store.get_run(hold.run)
    if row is None:
        return []
    return [
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
    ]


async def open_breakpoints(
    service: RunAccess, *, run: str | None, flow: str | None, tenant: str | None
) -> list[HoldRow]:
    """Breakpoints that runs wait at, oldest first; not those of imported history."""
    only = None if run is None else (await service.get(run, tenant=tenant)).id
    holds = await service.store.holds(run=only, status=HoldStatus.pending, tenant=tenant, limit=ALL)
    found = [h for h in holds if h.type == BREAKPOINT and flow in (None, h.flow)]
    rows = {h.run: await service.store.get_run(h.run) for h in found}
    return [h for h in found if (row := rows[h.run]) is not None and not row.read_only]
