"""Schedules: flows that start at set times."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.masked_values import require_unmasked
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, place_of
from holdfast.api.program_lookup import is_visible_to_tenant
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.schedules import (
    FillSchedule,
    FiringWire,
    Instants,
    PauseSchedule,
    PutSchedule,
    ScheduleFill,
    ScheduleTrigger,
    ScheduleWire,
    TriggerSchedule,
    firing_wire,
    schedule_wire,
)
from holdfast.errors import FlowNotFoundError, InputError, ScheduleNotFoundError
from holdfast.model.program import Program
from holdfast.runs.schedules.schedule import Schedule
from holdfast.types.clock import iso
from holdfast.types.ids import derived_id

routes = Routes("schedules")

_MISSING = (ScheduleNotFoundError,)


class ListSchedules(msgspec.Struct, kw_only=True):
    limit: Limit = 50
    cursor: Cursor | None = None


class NextInstantsQuery(msgspec.Struct, kw_only=True):
    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5


@routes.get("/schedules", needs=Right.schedules_read)
async def list_schedules(call: ApiCall, query: ListSchedules) -> Page[ScheduleWire]:
    """The tenant's schedules, by name."""
    after = place_of(call.hf.cell, query.cursor, tuple[str])
    schedules = await call.hf.schedules()
    found = [
        each for each in await schedules.list(tenant=call.tenant) if after is None or each.name > after[0]
    ]
    shown = found[: query.limit]
    return Page(
        items=[schedule_wire(each) for each in shown],
        next=cursor_of(call.hf.cell, shown[-1].name) if len(found) > len(shown) else None,
    )


@routes.get("/schedules/{name:path}", needs=Right.schedules_read, more=(304,), raises=_MISSING)
async def get_schedule(call: ApiCall, name: str) -> ApiReply[ScheduleWire]:
    """A schedule with its settings and state."""
    return _schedule_reply(await (await call.hf.schedules()).get(name, tenant=call.tenant))


def _schedule_reply(schedule: Schedule) -> ApiReply[ScheduleWire]:
    return ApiReply(body=schedule_wire(schedule), etag=str(schedule.revision))


@routes.put(
    "/schedules/{name:path}",
    needs=Right.schedules_write,
    guarded=True,
    more=(201,),
    raises=(InputError, FlowNotFoundError),
)
async def put_schedule(call: ApiCall, name: str, body: PutSchedule) -> ApiReply[ScheduleWire]:
    """Create (201) or change (200) a schedule. `If-Match`: only the version that you read."""
    schedules = await call.hf.schedules()
    try:
        known = await schedules.get(name, tenant=call.tenant)
    except ScheduleNotFoundError:
        known = None
    if known is not None or "if-match" in call.request.headers:
        call.require_match("" if known is None else str(known.revision), exists=known is not None)
    require_unmasked(body.input, None if known is None else known.plan.input)
    plan: dict[str, Any] = {
        field: value for field in body.__struct_fields__ if (value := getattr(body, field)) is not None
    }
    flow = await _flow(call, plan.pop("flow"))
    made = _schedule_reply(
        await schedules.put(name, flow, tenant=call.tenant, by=call.actor.id, via=call.actor.people, **plan)
    )
    if known is None:
        made.status, made.headers = 201, call.location(f"/v1/schedules/{name}")
    return made


async def _flow(call: ApiCall, name: str) -> Program | str:
    """If the flow's code is loaded here, the input is checked against it."""
    service = await call.runs()
    loaded = [p for p in service.runtime.programs.values() if p.graph.name == name]
    loaded = [p for p in loaded if await is_visible_to_tenant(call, name, p.version)]
    if loaded:
        return loaded[-1]
    now = service.store.now()
    alive = [row for row in await service.store.workers() if row.is_alive(now)]
    served = any(name in row.versions.values() for row in alive)
    stored = [row for row in await service.store.flows(graphs=False) if row.name == name]
    if not served and not any([await is_visible_to_tenant(call, name, row.version) for row in stored]):
        raise FlowNotFoundError(
            f"there is no flow {name!r} here.", hint="GET /v1/flows lists them.", flow=name
        )
    return name


@routes.delete("/schedules/{name:path}", needs=Right.schedules_write, guarded=True, raises=_MISSING)
async def delete_schedule(call: ApiCall, name: str) -> None:
    """Delete it. Runs that it has started continue."""
    schedules = await call.hf.schedules()
    call.require_match(str((await schedules.get(name, tenant=call.tenant)).revision))
    await schedules.delete(name, tenant=call.tenant)


@routes.get("/schedules/{name:path}/next", needs=Right.schedules_read, raises=_MISSING)
async def next_of_schedule(call: ApiCall, name: str, query: NextInstantsQuery) -> Instants:
    """Its next starts, if it is not paused."""
    found = await (await call.hf.schedules()).next(name, query.count, tenant=call.tenant)
    return Instants(items=[iso(instant) for instant in found])


@routes.get("/schedules/{name:path}/history", needs=Right.schedules_read, raises=_MISSING)
async def history_of_schedule(call: ApiCall, name: str) -> Page[FiringWire]:
    """What became of its instants, the newest first: the last hundred."""
    found = await (await call.hf.schedules()).history(name, tenant=call.tenant)
    return Page(items=[firing_wire(firing) for firing in found])


@routes.post(
    "/schedules/{name:path}/fill", needs=Right.schedules_write, keyed=True, raises=(*_MISSING, InputError)
)
async def fill_schedule(call: ApiCall, name: str, body: FillSchedule) -> ScheduleFill:
    """Start the runs of its past instants in a range. An instant that has a run is left as it is."""
    token = None if call.key is None else derived_id("fill", call.tenant, name, call.key)
    found = await (await call.hf.schedules()).fill(
        name,
        body.first,
        body.last,
        one_by_one=body.one_by_one,
        dry_run=body.dry_run,
        by=call.actor.id,
        via=call.actor.people,
        tenant=call.tenant,
        token=token,
    )
    return ScheduleFill(items=[iso(instant) for instant in found])


@routes.post("/schedules/{name:path}/pause", needs=Right.schedules_write, raises=_MISSING)
async def pause_schedule(call: ApiCall, name: str, body: PauseSchedule) -> ApiReply[ScheduleWire]:
    """Pause it until it is resumed."""
    schedules = await call.hf.schedules()
    return _schedule_reply(
        await schedules.pause(name, reason=body.reason, by=call.actor.id, tenant=call.tenant)
    )


@routes.post("/schedules/{name:path}/resume", needs=Right.schedules_write, raises=_MISSING)
async def resume_schedule(call: ApiCall, name: str) -> ApiReply[ScheduleWire]:
    """Resume it, from its next start."""
    schedules = await call.hf.schedules()
    return _schedule_reply(await schedules.resume(name, by=call.actor.id, tenant=call.tenant))


@routes.post(
    "/schedules/{name:path}/trigger", needs=Right.schedules_write, status=201, keyed=True, raises=_MISSING
)
async def trigger_schedule(call: ApiCall, name: str, body: TriggerSchedule) -> ApiReply[ScheduleTrigger]:
    """Start one run now, in addition to its scheduled starts, even while it is paused."""
    schedules = await call.hf.schedules()
    token = None if call.key is None else derived_id("trigger", call.tenant, name, call.key)
    run = await schedules.trigger(
        name, input=body.input, by=call.actor.id, via=call.actor.people, tenant=call.tenant, token=token
    )
    return ApiReply(body=ScheduleTrigger(run=run), status=201, headers=call.location(f"/v1/runs/{run}"))
