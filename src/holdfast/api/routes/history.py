"""The history of a run: checkpoints, timeline, graph, differences, events."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, decode_cursor
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.events import event_wire
from holdfast.api.schemas.files import drawing
from holdfast.api.schemas.history import (
    CheckpointDetail,
    CheckpointSummary,
    EventPage,
    StepWire,
    TimelineWire,
    detail_of,
    step_wire,
    summary_of,
    totals_of,
    visit_wire,
)
from holdfast.attractor.picture import picture_of_visits
from holdfast.checkpoint.visit import Visit
from holdfast.drawing.svg import to_svg
from holdfast.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    FlowNotFoundError,
    InputError,
    RunNotFoundError,
)
from holdfast.runs.history.checkpoints import resolve
from holdfast.runs.history.timeline import make_timeline
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId, is_id
from holdfast.types.record import Kind
from holdfast.types.status import ENDED, CheckpointStatus

routes = Routes("runs")

_MISSING = (RunNotFoundError,)
_OF_STEPS = (Kind.step, Kind.attempt, Kind.asked, Kind.substep)


class ListCheckpoints(msgspec.Struct, kw_only=True):
    node: str | None = None
    limit: Limit = 10
    cursor: Cursor | None = None


class ShowTimeline(msgspec.Struct, kw_only=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=5000, description="Ended visits, the latest.")] = 500


class DiffQuery(msgspec.Struct, kw_only=True):
    """`to`: a run, RUN@12, RUN@node or a checkpoint's id; `at`: a record or node of this run."""

    to: str
    at: str | None = None
    whole: bool = False


class ReadEvents(msgspec.Struct, kw_only=True):
    after: Annotated[int, msgspec.Meta(ge=0, le=2**40)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200


@routes.get("/runs/{run}/checkpoints", needs=Right.runs_read, raises=_MISSING)
async def list_checkpoints(call: ApiCall, run: str, query: ListCheckpoints) -> Page[CheckpointSummary]:
    """A run's checkpoints, newest first, without their state."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    place = decode_cursor(query.cursor, tuple[int])
    found = await service.checkpoints(
        row.id, limit=query.limit + 1, node=query.node, before=None if place is None else place[0]
    )
    shown = found[: query.limit]
    asked: dict[str, HoldRow] = {}
    if any(each.status is CheckpointStatus.pending_input for each in shown):
        asked = {hold.id: hold for hold in await service.holds(row.id, open_only=False)}
    return Page(
        items=[summary_of(each, asked.get(each.id)) for each in shown],
        next=cursor_of(shown[-1].seq) if len(found) > len(shown) else None,
    )


@routes.get(
    "/runs/{run}/checkpoints/{checkpoint}",
    needs=Right.runs_read,
    more=(304,),
    raises=(*_MISSING, CheckpointNotFoundError, CheckpointCorruptError),
)
async def get_checkpoint(call: ApiCall, run: str, checkpoint: str) -> ApiReply[CheckpointDetail]:
    """A checkpoint with the states of its nodes: by its id, the number of its record, or `latest`."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    seq = await _record_of(service, row, checkpoint)
    return ApiReply(
        body=detail_of(await service.checkpoint(row.id, seq)), etag=f"{row.id}.{seq}.{row.horizon}"
    )


async def _record_of(service: RunService, row: RunRow, named: str) -> int:
    if named == "latest":
        return (await service.latest(row.id)).seq
    if named.isascii() and named.isdigit() and len(named) < 12:
        return (await resolve(service, row.id, int(named)))[1]
    found, seq = await resolve(service, named)
    if found.id != row.id:
        raise CheckpointNotFoundError(
            f"checkpoint {named!r} is not one of run {row.id}.", run=row.id, checkpoint=named
        )
    return seq


@routes.get("/runs/{run}/timeline", needs=Right.runs_read, raises=(*_MISSING, FlowNotFoundError))
async def get_timeline(call: ApiCall, run: str, query: ShowTimeline) -> TimelineWire:
    """Each visit of each node: its start, waits, questions, retries and outcome."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    line = await make_timeline(service, row, keep=query.limit)
    # Events do not name their records, which is where a step can be looked up.
    records = await service.store.read(row.id, first=row.horizon, payloads=False)
    seqs = {(r.scope, r.node, r.visit): r.seq for r in records if r.node and r.kind in _OF_STEPS}
    visits = line.visits.all()
    for visit in visits:
        if visit.run in ("", row.id):
            visit.seq = seqs.get((visit.scope, visit.node, visit.visit), -1)
    return TimelineWire(
        run=row.id,
        items=[visit_wire(each, row.id) for each in visits],
        nodes={path: totals_of(node) for path, node in line.visits.nodes.items()},
        edges=dict(line.visits.edges),
        left_out=line.visits.left_out,
        damage=line.damage,
    )


@routes.get(
    "/runs/{run}/steps/{seq}",
    needs=Right.runs_read,
    raises=(*_MISSING, InputError, CheckpointNotFoundError, CheckpointCorruptError),
)
async def get_step(call: ApiCall, run: str, seq: str) -> StepWire:
    """The visit that a record settled, or that was under way there: its input, output, attempts, sub-steps,
    changes of the state and error."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    if not seq.isascii() or not seq.isdigit() or len(seq) > 11:
        raise InputError(f"{seq!r} is not the number of a record.", hint="The timeline has the numbers.")
    at = int(seq)
    found = next((visit for visit in (await service.story(row.id)).visits if _is_at(visit, at)), None)
    if found is None or not row.horizon <= at <= row.head:
        raise CheckpointNotFoundError(f"record {at} of run {row.id} belongs to no step.", run=row.id)
    before = (await service.checkpoint(row.id, max(row.horizon, at - 1))).shown()
    return step_wire(found, row.id, before.state)


def _is_at(visit: Visit, seq: int) -> bool:
    return visit.seq == seq or any(
        each.seq == seq for each in (*visit.trials, *visit.calls, *visit.questions)
    )


@routes.get(
    "/runs/{run}/drawing",
    needs=Right.runs_read,
    media=("image/svg+xml",),
    raises=(*_MISSING, FlowNotFoundError),
)
async def get_run_drawing(call: ApiCall, run: str) -> Response:
    """The run's graph with the state of each node, as SVG."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    line = await make_timeline(service, row, keep=0)
    return drawing(to_svg(picture_of_visits(line.graph, line.visits, interrupted=line.interrupted)))


@routes.get(
    "/runs/{run}/diff", needs=Right.runs_read, raises=(*_MISSING, CheckpointNotFoundError, InputError)
)
async def diff_runs(call: ApiCall, run: str, query: DiffQuery) -> dict[str, Any]:
    """Compare this run, or a checkpoint `at` of it, with another: values, visits, cost."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    here = f"{row.id}@{query.at}" if query.at is not None else row.id
    there = await _own_reference(service, query.to, call.tenant)
    return (await service.diff(here, there, whole=query.whole)).as_json()


async def _own_reference(service: RunService, ref: str, tenant: str) -> str:
    """The checkpoint, if it is of a run of this tenant. Those of other tenants are not found."""
    run, at, place = ref.partition("@")
    if not at and is_id(ref) and await service.store.get_run(RunId(ref)) is None:
        found, seq = await resolve(service, ref)
        if found.tenant != tenant:
            raise CheckpointNotFoundError(f"there is no checkpoint {ref!r} in this store.", checkpoint=ref)
        return f"{found.id}@{seq}"
    row = await service.get(run, tenant=tenant)
    return f"{row.id}{at}{place}"


@routes.get("/runs/{run}/events", needs=Right.runs_read, raises=_MISSING)
async def list_events(call: ApiCall, run: str, query: ReadEvents) -> EventPage:
    """The stored events after a number, oldest first, without gaps or repetitions."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    found = await service.events(row.id, after=query.after, limit=query.limit)
    last = found[-1].number if found else query.after
    ended = row.status in ENDED and last >= row.event_seq
    return EventPage(
        items=[event_wire(each) for each in found], next=None if ended else last, last=last, ended=ended
    )
