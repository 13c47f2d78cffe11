"""For operators: workers, metrics, limits, dead letters, state of the store.

Data of the whole server, not of a tenant, is shown only to administrators of the default tenant.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast._version import __version__
from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, place_of
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.admin import (
    DeadRunWire,
    FiguresWire,
    LeaseWire,
    LimitWire,
    SetLimit,
    StatusWire,
    WorkerWire,
    dead_run_wire,
    figures_wire,
    lease_wire,
    worker_wire,
)
from holdfast.api.schemas.runs import RunDetail, run_detail
from holdfast.errors import ForbiddenError, NotFoundError, RunEndedError, RunNotFoundError, SettingsError
from holdfast.runs.concurrency_limits.service import Limit as Held
from holdfast.runs.run_view import RunWire, run_wire, shown_run, shown_runs
from holdfast.store.rows import RunFilter
from holdfast.types.clock import MICROS
from holdfast.types.ids import DEFAULT_TENANT

routes = Routes("admin")

_DEAD = (RunNotFoundError, RunEndedError)
_AGES = (3600 * MICROS, 24 * 3600 * MICROS)


class ListDead(msgspec.Struct, kw_only=True):
    limit: Limit = 50


class DiscardDead(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`unread`: its history will not show which effects were running."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] = "discarded"
    unread: bool = False


class ListLeases(msgspec.Struct, kw_only=True):
    worker: Annotated[str, msgspec.Meta(max_length=1000)] | None = None
    cursor: Cursor | None = None
    limit: Limit = 50


class ListLimits(msgspec.Struct, kw_only=True):
    """`keys`: also keys that have runs now, even if no limit is set for them."""

    prefix: str = ""
    keys: bool = False


def _require_instance(call: ApiCall) -> None:
    if call.tenant != DEFAULT_TENANT:
        raise ForbiddenError(
            "this is about the whole server, not one tenant.",
            hint=f"Only administrators of the tenant {DEFAULT_TENANT!r} may see it.",
        )


@routes.get("/workers", needs=Right.admin, raises=(ForbiddenError,))
async def list_workers(call: ApiCall) -> Page[WorkerWire]:
    """Workers by name, including those that stopped heartbeating within the last day."""
    _require_instance(call)
    store = (await call.runs()).store
    now = store.now()
    return Page(items=[worker_wire(row, now) for row in await store.workers()])


@routes.get("/leases", needs=Right.admin, raises=(ForbiddenError,))
async def list_leases(call: ApiCall, query: ListLeases) -> Page[LeaseWire]:
    """Runs that a process has now, of all tenants, the newest first: those of `worker`, or all. A process
    that only runs one flow has leases too, and is not in the list of workers."""
    _require_instance(call)
    store = (await call.runs()).store
    now = store.now()
    where = RunFilter(leased=True, worker=query.worker)
    after = place_of(call.hf.cell, query.cursor, tuple[int, int])
    rows = await store.list_runs(where, after=after, limit=query.limit + 1)
    shown = rows[: query.limit]
    following = (
        cursor_of(call.hf.cell, shown[-1].created_at, shown[-1].key) if len(rows) > query.limit else None
    )
    return Page(items=[lease_wire(row, now) for row in shown], next=following)


@routes.get("/figures", needs=Right.admin, raises=(ForbiddenError,))
async def get_figures(call: ApiCall) -> FiguresWire:
    """The backlog, and how late it is."""
    _require_instance(call)
    store = (await call.runs()).store
    return figures_wire(await store.fleet_figures(ages=_AGES), await store.workers())


@routes.get("/admin/status", needs=Right.admin, raises=(ForbiddenError,))
async def get_status(call: ApiCall) -> StatusWire:
    """The state of the server and its store."""
    _require_instance(call)
    service = await call.runs()
    facts, durability = await service.store.examine(deep=False), await service.store.durability()
    now = service.store.now()
    return StatusWire(
        release=__version__,
        store=type(service.store).__name__,
        schema=facts.schema,
        size=facts.size,
        problems=facts.problems,
        drift=[f"{each.what} {each.todo}" for each in facts.drift],
        weak=durability.weak,
        unfinished_migrations=facts.unfinished,
        blobs=facts.blobs,
        missing_blobs=len(facts.missing),
        lapsed_runs=len(facts.lapsed),
        workers=sum(row.is_alive(now) for row in await service.store.workers()),
        flows={version: p.graph.name for version, p in service.runtime.programs.items()},
    )


@routes.get("/limits", needs=Right.admin, raises=(ForbiddenError,))
async def list_limits(call: ApiCall, query: ListLimits) -> Page[LimitWire]:
    """Limits in effect, with the number of active and waiting runs; and those that items of maps share by a
    key (`items:KEY`, of the caller's tenant), as far as items run or wait."""
    _require_instance(call)
    found = await (await call.hf.limits()).list(query.prefix, keys=query.keys, tenant=call.tenant)
    return Page(items=[_limit(each) for each in found])


def _limit(held: Held) -> LimitWire:
    return LimitWire(**{name: getattr(held, name) for name in LimitWire.__struct_fields__})


@routes.put("/limits/{name:path}", needs=Right.admin, raises=(SettingsError, ForbiddenError))
async def set_limit(call: ApiCall, name: str, body: SetLimit) -> LimitWire:
    """Set a limit that overrides the flow's: `flow:refund`, `flow:refund/*`, `flow:refund/acme`."""
    _require_instance(call)
    return _limit(await (await call.hf.limits()).set(name, concurrency=body.concurrency, rate=body.rate))


@routes.delete("/limits/{name:path}", needs=Right.admin, raises=(NotFoundError, ForbiddenError))
async def clear_limit(call: ApiCall, name: str) -> None:
    """Remove a set limit: the flow's declared limit applies again."""
    _require_instance(call)
    await (await call.hf.limits()).clear(name)


@routes.get("/dead", needs=Right.runs_read)
async def list_dead_runs(call: ApiCall, query: ListDead) -> Page[RunWire]:
    """Dead letters: runs that were given up because their workers kept dying, newest first."""
    service = await call.runs()
    found = await service.dead(tenant=call.tenant, limit=query.limit)
    return Page(items=[run_wire(row) for row in await shown_runs(service.store, found)])


@routes.get("/dead/{run}", needs=Right.runs_read, raises=(RunNotFoundError,))
async def get_dead_run(call: ApiCall, run: str) -> DeadRunWire:
    """Every death of a worker that had this run, with the nodes that were running."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    return dead_run_wire(await service.deaths(row.id), await shown_run(service.store, row))


@routes.post("/dead/{run}/retry", needs=Right.runs_write, raises=_DEAD)
async def retry_dead_run(call: ApiCall, run: str) -> RunDetail:
    """Retry it once the cause is fixed: any worker may resume it."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    return await run_detail(service, await service.retry_dead(row.id, by=call.actor.id))


@routes.post("/dead/{run}/discard", needs=Right.runs_write, raises=_DEAD)
async def discard_dead_run(call: ApiCall, run: str, body: DiscardDead) -> RunDetail:
    """Discard it: the next worker that serves its flow cancels it.

    With `unread` it is cancelled at once, without being loaded: for a run whose flow no worker serves."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    ended = await service.discard_dead(row.id, reason=body.reason, by=call.actor.id, unread=body.unread)
    return await run_detail(service, ended)
