"""Many runs: the list with its search, the counts, cancel, retry and discard in bulk, breakpoints."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page, cursor_of, place_of
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.holds import BulkWire, bulk_wire
from holdfast.api.schemas.runs import (
    BulkRunItem,
    BulkRuns,
    BulkRunsResult,
    ContinueBreakpoints,
    ListRuns,
    RunCounts,
    RunFilters,
)
from holdfast.errors import (
    HoldfastError,
    HoldNotFoundError,
    InputError,
    RunEndedError,
    RunNotFoundError,
    RunStatusError,
    StoreError,
)
from holdfast.holds.actions.bulk import MAX_HOLDS, BulkItem, BulkResult
from holdfast.runs.encryption.detect import encrypted_store_within
from holdfast.runs.preview.run_change import preview_change
from holdfast.runs.run_query import read_run_query
from holdfast.runs.run_view import RunWire, run_wire, shown_run, shown_runs
from holdfast.runs.service import RunService
from holdfast.store.errors import require_live
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.hold import BREAKPOINT
from holdfast.types.ids import HoldId
from holdfast.types.status import ENDED, RunStatus, run_label

routes = Routes("runs")

_CHANGED = {
    "retry": (RunStatus.failed, RunStatus.resumable),
    "cancel": tuple(status for status in RunStatus if status not in ENDED),
}
# Records that a preview reads to say what would happen.
_EXPLAINED = 20_000


@routes.get("/runs", needs=Right.runs_read, raises=(InputError,))
async def list_runs(call: ApiCall, query: ListRuns) -> Page[RunWire]:
    """The tenant's runs, newest first. `q` searches with words."""
    return await page_of_runs(await call.runs(), await _filter(call, query), query.cursor, query.limit)


async def _filter(call: ApiCall, query: RunFilters) -> RunFilter:
    service = await call.runs()
    where = RunFilter(
        tenant=call.tenant,
        status=tuple(query.status),
        flow=query.flow,
        version=query.version,
        thread=query.thread,
        forked_from=query.forked_from,
        parent_run=query.parent_run,
        shown_at=service.store.now(),
        instance_key=query.instance_key,
    )
    if not query.q:
        return where
    found = read_run_query(query.q, where, me=call.actor.id, now=service.store.now())
    if found.error is not None and encrypted_store_within(service.store) is not None:
        raise InputError(
            "errors cannot be searched in this store: they are encrypted.", hint="Leave error: out."
        )
    return found


@routes.get("/runs/count", needs=Right.runs_read, raises=(InputError,))
async def count_runs(call: ApiCall, query: RunFilters) -> RunCounts:
    """The number of runs in that list, in all and by status."""
    found = await (await call.runs()).store.count_runs(await _filter(call, query))
    return RunCounts(
        count=sum(found.values()), by_status={str(status): found[status] for status in sorted(found)}
    )


@routes.post("/runs/bulk", needs=Right.runs_write)
async def change_many_runs(call: ApiCall, body: BulkRuns) -> BulkRunsResult:
    """Cancel or retry many runs, or discard dead letters, each separately. By default only a preview."""
    items = [await _change_one(call, run, body) for run in dict.fromkeys(body.runs)]
    if body.preview:
        await _explain(call, body.action, items)
    codes = [item.code for item in items if item.code is not None]
    return BulkRunsResult(
        preview=body.preview,
        done=sum(item.done for item in items),
        left_out={code: codes.count(code) for code in dict.fromkeys(codes)},
        items=items,
    )


async def _change_one(call: ApiCall, run: str, body: BulkRuns) -> BulkRunItem:
    service = await call.runs()
    try:
        row = await service.get(run, tenant=call.tenant)
        require_live(row)
        dead = row.dead and row.status is RunStatus.failed
        shown = await shown_run(service.store, row)
        if not (dead if body.action == "discard" else shown.status in _CHANGED[body.action]):
            unfit = RunEndedError if shown.status in ENDED else RunStatusError
            raise unfit(_why_not(shown, body.action, dead), run=row.id)
        if not body.preview:
            row = await _changed(call, row, body)
    except HoldfastError as error:
        if isinstance(error, StoreError):
            raise
        return BulkRunItem(run=run, done=False, code=error.code, why=error.message)
    status = str((await shown_run(service.store, row)).status)
    return BulkRunItem(run=row.id, done=True, status=status, dead=dead)


def _why_not(shown: RunRow, action: str, dead: bool) -> str:
    is_now = f"run {shown.id} is {run_label(shown.status)}"
    if action == "discard":
        return f"{is_now}; it is not a dead letter."
    return f"{is_now}, a dead letter: discard cancels it." if dead else f"{is_now}."


async def _changed(call: ApiCall, row: RunRow, body: BulkRuns) -> RunRow:
    service, by = await call.runs(), call.actor.id
    if body.action == "discard":
        return await service.discard_dead(row.id, reason=body.reason or "discarded", by=by)
    if body.action == "cancel":
        return await service.cancel(row.id, reason=body.reason or "cancelled", by=by)
    return await (service.retry_dead(row.id, by=by) if row.dead else service.request_resume(row.id))


async def _explain(call: ApiCall, action: str, items: list[BulkRunItem]) -> None:
    """Says what would happen to each, as long as the histories to be read for that are short."""
    service, room = await call.runs(), _EXPLAINED
    for item in items:
        if item.done:
            row = await service.get(item.run, tenant=call.tenant)
            room -= row.head
            if room < 0:
                return
            item.text = await _consequences(call, row, action, item.dead)


async def _consequences(call: ApiCall, row: RunRow, action: str, dead: bool) -> list[str]:
    """A run whose history cannot be read says so: it can still be changed."""
    service = await call.runs()
    text: list[str] = []
    try:
        if dead:
            names = [name for name, _ in (await service.deaths(row.id)).suspects]
            text = [f"Ran when its workers died: {', '.join(names)}."] if names else []
        if action == "discard":
            return [
                *text,
                "The run is cancelled by the next worker that serves its flow; none of its nodes run.",
            ]
        meant = "retry" if action == "retry" else "cancel"
        found = await preview_change(service, row, meant, actor=call.actor)
        return [*found.text, *text]
    except StoreError:
        raise
    except HoldfastError as error:
        return [*text, f"Its history cannot be read: {error.message}"]


async def page_of_runs(
    service: RunService, where: RunFilter, cursor: str | None, limit: int
) -> Page[RunWire]:
    after = place_of(service.runtime.cell, cursor, tuple[int, int])
    where = replace(where, shown_at=service.store.now())
    rows = await service.store.list_runs(where, after=after, limit=limit + 1)
    shown = rows[:limit]
    following = (
        cursor_of(service.runtime.cell, shown[-1].created_at, shown[-1].key) if len(rows) > limit else None
    )
    items = [run_wire(row) for row in await shown_runs(service.store, shown)]
    return Page(items=items, next=following)


@routes.post("/breakpoints/continue", needs=Right.runs_write, raises=(InputError, RunNotFoundError))
async def continue_breakpoints(call: ApiCall, body: ContinueBreakpoints) -> BulkWire:
    """Continue runs that wait at breakpoints: those named, those of a run or of a flow. `preview`: only say
    which."""
    if [body.holds is None, body.run is None, body.flow is None].count(False) != 1:
        raise InputError("name the breakpoints by holds, by run or by flow.", hint="Send one of the three.")
    service, people = await call.runs(), await call.holds()
    if body.holds is None:
        found = await service.breakpoints(run=body.run, flow=body.flow, tenant=call.tenant)
    else:
        rows = [await service.store.hold(HoldId(hold)) for hold in dict.fromkeys(body.holds)]
        found = [row for row in rows if row is not None and row.tenant == call.tenant]
        # Only breakpoints: another hold may have an option of this name, and needs another right.
        found = [row for row in found if row.type == BREAKPOINT]
    if body.clear and not body.preview:
        for run in dict.fromkeys(hold.run for hold in found):
            await service.request_resume(run, no_breaks=True)
    items = [
        BulkItem(hold=hold, done=False, code=HoldNotFoundError.code, why="there is no such breakpoint.")
        for hold in dict.fromkeys(body.holds or ())
        if hold not in {row.id for row in found}
    ]
    for first in range(0, len(found), MAX_HOLDS):
        part = [hold.id for hold in found[first : first + MAX_HOLDS]]
        done = await people.bulk(call.actor, part, {"decision": "continue"}, preview=body.preview)
        items = [*done.items, *items]
    return bulk_wire(BulkResult(body.preview, tuple(items)))
