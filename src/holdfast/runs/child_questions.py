"""Runs that wait for a change of another run which they manage: whom a change wakes, and whose questions they
show.

The wait is that for an event. Its key names the managed run and its last record, so that only a change after
that record ends it, and no event is left over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.store.rows import RunRow
from holdfast.types.hold import CONSUME, MACHINE_WAITS, HoldFilter, HoldOrder, HoldRow
from holdfast.types.ids import RunId
from holdfast.types.queue_message import event_queue, event_tag
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.driver.services import RunServices
    from holdfast.runs.service import RunService
    from holdfast.store.protocols import Store

CHILD_CHANGED: Final = "holdfast.child.changed"
_KEPT: Final = 60_000_000
"""Microseconds; a wait that was found takes it at once."""
_ALL: Final = 1_000_000
_DEEPEST: Final = 32


def change_key(row: RunRow) -> str:
    return change_at(row.id, row.head)


def change_at(run: RunId, head: int) -> str:
    """The change after this record."""
    return f"{run}@{head}"


def run_of(change: str) -> RunId:
    return RunId(change.partition("@")[0])


def is_child_question(hold: HoldRow) -> bool:
    """Whether the run waits for an answer to a question of a run that it manages; a wait for anything else of
    it has a limit."""
    return hold.expires_at is None and bool(awaited_change(hold))


def _event(hold: HoldRow) -> dict[str, Any]:
    return msgspec.json.decode(hold.context, type=dict[str, Any])


async def questions_of(store: Store, run: RunId, *, depth: int = 0) -> list[HoldRow]:
    """The open holds of a run; in place of a wait for a managed run, those of that run."""
    found: list[HoldRow] = []
    for hold in await store.holds(run=run, status=HoldStatus.pending, limit=_ALL):
        if not is_child_question(hold):
            found.append(hold)
        elif depth < _DEEPEST:
            theirs = await questions_of(store, run_of(awaited_change(hold)), depth=depth + 1)
            found += [each for each in theirs if each.type not in MACHINE_WAITS]
    return found


async def tell_watchers(services: RunServices, change: str, tenant: str) -> None:
    """Wake the runs that wait for this change (`change_key`)."""
    if services.queues is None:
        return
    tag = event_tag(event_queue(CHILD_CHANGED, change))
    where = HoldFilter(tenant=tenant, status=(HoldStatus.pending,), type=(CONSUME,), tags=(tag,))
    if await services.store.list_holds(where, order=HoldOrder.oldest, limit=1):
        queues: Any = services.queues.open()
        await queues.send_event(CHILD_CHANGED, key=change, keep=_KEPT, tenant=tenant)


def awaited_change(hold: HoldRow) -> str:
    """The change that a hold waits for (`change_key`); empty: it waits for something else."""
    event = _event(hold) if hold.type == CONSUME else {}
    return str(event.get("key", "")) if event.get("event") == CHILD_CHANGED else ""


async def look_for_changes(service: RunService, run: RunId, *, depth: int = 0) -> None:
    """Wake a run that waits for a change which has happened already: without a worker nobody has told it.
    The runs that it manages come first, because the answer may be for one far below."""
    for hold in await service.holds(run):
        change = awaited_change(hold)
        if not change:
            continue
        child = run_of(change)
        if depth < _DEEPEST:
            await look_for_changes(service, child, depth=depth + 1)
        row = await service.store.get_run(child)
        if row is not None and not await is_unchanged(service.store, row, change):
            await tell_watchers(service.runtime, change, row.tenant)


async def is_unchanged(store: Store, row: RunRow, change: str) -> bool:
    """Whether it still waits at that record. A run whose answer is there does not, even if no worker has
    taken it up."""
    if change_key(row) != change:
        return False
    if row.status is RunStatus.pending_input:
        return bool(await store.holds(run=row.id, status=HoldStatus.pending, limit=1))
    return row.status is RunStatus.waiting
