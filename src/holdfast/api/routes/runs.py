"""Runs: started, listed, shown."""

from __future__ import annotations

import msgspec

from holdfast.api.auth.principal import Right
from holdfast.api.routing import Call, Reply, Routes
from holdfast.api.wire.common import Cursor, Limit, Page, cursor_of, place_in
from holdfast.api.wire.runs import RunWire, run_wire
from holdfast.errors import RunNotFoundError
from holdfast.store.base import RunFilter
from holdfast.types.status import RunStatus

routes = Routes("runs")


class ListRuns(msgspec.Struct, kw_only=True):
    status: list[RunStatus] = []
    flow: str | None = None
    thread: str | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


@routes.get("/runs", needs=Right.runs_read, also=("/runs", "/v2/runs"))
async def list_runs(call: Call, query: ListRuns) -> Page[RunWire]:
    """The tenant's runs, newest first."""
    service = await call.runs()
    where = RunFilter(tenant=call.tenant, status=tuple(query.status), flow=query.flow, thread=query.thread)
    after = place_in(query.cursor, tuple[int, int])
    rows = await service.store.list_runs(where, after=after, limit=query.limit + 1)
    more = len(rows) > query.limit
    shown = rows[: query.limit]
    following = cursor_of(shown[-1].created_at, shown[-1].key) if more else None
    return Page(items=[run_wire(row) for row in shown], next=following)


@routes.get(
    "/runs/{run}", needs=Right.runs_read, raises=(RunNotFoundError,), also=("/runs/{run}", "/v2/runs/{run}")
)
async def get_run(call: Call, run: str) -> Reply[RunWire]:
    """Where a run stands."""
    row = await (await call.runs()).get(run, tenant=call.tenant)
    return Reply(body=run_wire(row), etag=f"{row.term}.{row.head}.{row.event_seq}")
