"""The history of a run: checkpoints, timeline, graph, differences, events."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.draw import draw, svg_of_run
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, place_of
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.events import event_wire
from holdfast.api.schemas.files import drawing
from holdfast.api.schemas.history import (
    CheckpointDetail,
    CheckpointSummary,
    EventPage,
    PostmortemWire,
    RecordPage,
    StepWire,
    TimelineWire,
    detail_of,
    mark_wire,
    record_wire,
    step_wire,
    summary_of,
    totals_of,
    visit_wire,
)
from holdfast.attractor.picture import picture_of_visits
from holdfast.drawing import from_graph
from holdfast.drawing.placed_picture import PlacedPicture, placed
from holdfast.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    FlowNotFoundError,
    InputError,
    RunNotFoundError,
)
from holdfast.frontends.dot.lower import DIALECT
from holdfast.reports.formats import renderer
from holdfast.reports.postmortem import MAX_VISITS, build_postmortem
from holdfast.runs.events import reader_of
from holdfast.runs.history.checkpoints import resolve
from holdfast.runs.history.timeline import make_timeline
from holdfast.runs.history.timeline_page import changed_since, page_of
from holdfast.runs.history.visit_loader import load_visit
from holdfast.runs.history.visits import Visits
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId, is_id
from holdfast.types.status import ENDED, CheckpointStatus

routes = Routes("runs")

_MISSING = (RunNotFoundError,)
MOST_MARKS = 5_000


class ListCheckpoints(msgspec.Struct, kw_only=True):
    node: str | None = None
    limit: Limit = 10
    cursor: Cursor | None = None


class ShowTimeline(msgspec.Struct, kw_only=True):
    """`fold=items`: visits inside maps and sub-flows are counted, not listed; `within` lists those of one."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=20_000, description="Visits, the latest.")] = 500
    cursor: Cursor | None = None
    fold: Literal["items"] | None = None
    within: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    since: (
        Annotated[
            int,
            msgspec.Meta(
                ge=0,
                le=2**40,
                description="`head` of an earlier answer: only visits that may have changed since.",
            ),
        ]
        | None
    ) = None


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
    place = place_of(call.hf.cell, query.cursor, tuple[int])
    found = await service.checkpoints(
        row.id, limit=query.limit + 1, node=query.node, before=None if place is None else place[0]
    )
    shown = found[: query.limit]
    asked: dict[str, HoldRow] = {}
    if any(each.status is CheckpointStatus.pending_input for each in shown):
        asked = {hold.id: hold for hold in await service.holds(row.id, open_only=False)}
    return Page(
        items=[summary_of(each, asked.get(each.id)) for each in shown],
        next=cursor_of(call.hf.cell, shown[-1].seq) if len(found) > len(shown) else None,
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
    """Each visit of each node: its start, waits, questions, retries and outcome; the latest first page, and
    `next` for earlier ones."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    place = place_of(call.hf.cell, query.cursor, tuple[int])
    line = await make_timeline(service, row)
    page = page_of(
        line.visits.all(),
        limit=query.limit,
        end=None if place is None else place[0],
        fold=query.fold == "items",
        within=query.within,
    )
    return TimelineWire(
        run=row.id,
        items=[
            visit_wire(each, row.id, page.folded.get((each.label, each.visit)), line.graph)
            for each in (
                page.visits if query.since is None else changed_since(page.visits, row.id, query.since)
            )
        ],
        next=cursor_of(call.hf.cell, page.before) if page.before else None,
        marks=[mark_wire(each) for each in line.visits.marks[-MOST_MARKS:]],
        horizon=row.horizon,
        head=row.head,
        nodes={path: totals_of(node) for path, node in line.visits.nodes.items()},
        edges=dict(line.visits.edges),
        left_out=page.before,
        damage=line.damage,
        first_worker=line.first_worker,
    )


class ShowStep(msgspec.Struct, kw_only=True):
    past: Annotated[bool, msgspec.Meta(description="As it was at the record, without what came later.")] = (
        False
    )


@routes.get(
    "/runs/{run}/steps/{seq}",
    needs=Right.runs_read,
    raises=(*_MISSING, InputError, CheckpointNotFoundError, CheckpointCorruptError),
)
async def get_step(call: ApiCall, run: str, seq: str, query: ShowStep) -> StepWire:
    """The visit that a record settled, or that was under way there: its input, output, attempts with their
    workers, sub-steps, live output, changes of the state, and error with its traceback. Lines of code in a
    traceback need the right `runs:write`."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    if not seq.isascii() or not seq.isdigit() or len(seq) > 11:
        raise InputError(f"{seq!r} is not the number of a record.", hint="The timeline has the numbers.")
    found = await load_visit(service, row, int(seq), past=query.past)
    if found is None:
        raise CheckpointNotFoundError(f"record {int(seq)} of run {row.id} belongs to no step.", run=row.id)
    graph = (await reader_of(service, row)).graph
    writes = call.who.may(Right.runs_write)
    return step_wire(found.visit, row.id, found.state, found.workers, graph, with_source=writes)


class ReadRecords(msgspec.Struct, kw_only=True):
    first: Annotated[int, msgspec.Meta(ge=0, le=2**40, description="The number of the first record.")] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200


@routes.get("/runs/{run}/records", needs=Right.runs_read, raises=(*_MISSING, FlowNotFoundError))
async def list_records(call: ApiCall, run: str, query: ReadRecords) -> RecordPage:
    """Records of a run's journal from a number on, without their values. Pruned ones are left out."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    graph = (await reader_of(service, row)).graph
    first = max(query.first, row.horizon)
    found = await service.store.read(row.id, first=first, last=first + query.limit - 1, payloads=False)
    return RecordPage(items=[record_wire(each, graph) for each in found], horizon=row.horizon, head=row.head)


class ShowGraph(msgspec.Struct, kw_only=True):
    """`open`: maps and sub-flows whose inside is shown too, each with its path, as `child/inner`."""

    open: Annotated[list[Annotated[str, msgspec.Meta(max_length=1000)]], msgspec.Meta(max_length=50)] = []


class GraphWire(msgspec.Struct, kw_only=True):
    """`flat`: nodes inside others are named without their path, as stages of a pipeline are."""

    version: str
    flat: bool
    picture: PlacedPicture


@routes.get("/runs/{run}/graph", needs=Right.runs_read, raises=(*_MISSING, FlowNotFoundError, InputError))
async def get_run_graph(call: ApiCall, run: str, query: ShowGraph) -> GraphWire:
    """The graph of a run's version with the place of each node and edge. It does not change while the run
    does: the timeline has the states."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    graph = (await reader_of(service, row)).graph
    flat = graph.dialect == DIALECT

    def make() -> PlacedPicture:
        opened = frozenset(query.open)
        return placed(picture_of_visits(graph, Visits()) if flat else from_graph(graph, expand=opened))

    return GraphWire(version=row.version, flat=flat, picture=await draw(call, make))


@routes.get(
    "/runs/{run}/drawing",
    needs=Right.runs_read,
    media=("image/svg+xml",),
    raises=(*_MISSING, FlowNotFoundError, InputError),
)
async def get_run_drawing(call: ApiCall, run: str) -> Response:
    """The run's graph with the state of each node, as SVG."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    line = await make_timeline(service, row, keep=0)
    return drawing(await draw(call, lambda: svg_of_run(line)))


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


class ShowPostmortem(msgspec.Struct, kw_only=True):
    """`visits`: the number of visits that are shown in full; 0: all."""

    format: Literal["md", "html"] = "md"
    visits: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = MAX_VISITS


@routes.get("/runs/{run}/postmortem", needs=Right.runs_read, raises=(*_MISSING, FlowNotFoundError))
async def get_postmortem(call: ApiCall, run: str, query: ShowPostmortem) -> PostmortemWire:
    """A report of a run's whole history: each node in order, what it changed, what failed and how that was
    handled. The run need not have ended."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    found = await build_postmortem(service, row.id, chapters=query.visits)
    text = await draw(call, lambda: renderer(query.format)(found))
    return PostmortemWire(run=row.id, format=query.format, text=text)


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
