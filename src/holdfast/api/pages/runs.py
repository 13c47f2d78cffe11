"""Runs: the list, and the page of a run with its graph and timeline, which updates while the run is live."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.draw import draw, svg_of_run
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.render import page, redirect
from holdfast.api.pagination import Cursor, cursor_of, place_of
from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall
from holdfast.checkpoint.visit import Visit
from holdfast.errors import CheckpointNotFoundError, FlowNotFoundError, StoreError
from holdfast.model.graph import Graph
from holdfast.model.shown_names import shown_name
from holdfast.reports.run_graph import waiting_text
from holdfast.runs.history.timeline import Timeline, make_timeline
from holdfast.runs.run_view import shown_run, shown_runs
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.event import EVENTS
from holdfast.types.hold import HoldFilter, HoldRow
from holdfast.types.human_time import human_duration
from holdfast.types.status import ENDED, HoldStatus, RunStatus

routes = pages()
SHOWN: Final = 25
VISITS: Final = 200
HOLDS: Final = 200
REFRESH: Final = 5
"""Seconds after which a page without script reloads while the run is live."""
NAMES: Final = " ".join(name for name in EVENTS if name != "node.emitted")
"""Events after which a live page reloads."""
SVG_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
"""For a graph, which has inline styles and nothing else."""


class RunsQuery(msgspec.Struct, kw_only=True):
    status: str = ""
    flow: str = ""
    cursor: Cursor | None = None


class RunQuery(msgspec.Struct, kw_only=True):
    live: str = ""


@routes.get("/runs", needs=Right.runs_read)
async def runs_page(call: ApiCall, query: RunsQuery) -> Response:
    """The tenant's runs, newest first."""
    service = await call.runs()
    wanted = tuple(each for each in RunStatus if each == query.status)
    now = service.store.now()
    where = RunFilter(tenant=call.tenant, status=wanted, flow=query.flow or None, shown_at=now)
    after = place_of(call.hf.cell, query.cursor, tuple[int, int])
    rows = await service.store.list_runs(where, after=after, limit=SHOWN + 1)
    shown, last = rows[:SHOWN], rows[SHOWN - 1] if len(rows) > SHOWN else None
    return page(
        call.request,
        "runs.html",
        who=call.who,
        rows=await shown_runs(service.store, shown),
        now=service.store.now(),
        next=None if last is None else cursor_of(call.hf.cell, last.created_at, last.key),
        wanted=query.status,
        flow=query.flow,
        statuses=[str(each) for each in RunStatus],
    )


@routes.get("/runs/{run}", needs=Right.runs_read)
async def run_page(call: ApiCall, run: str, query: RunQuery) -> Response:
    """A run: its status, graph and timeline, and the holds that it waits for."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    now = service.store.now()
    line = await _timeline(service, row)
    live = row.status not in ENDED and not row.read_only and query.live != "off"
    holds = await _holds(call, row)
    return page(
        call.request,
        "run.html",
        who=call.who,
        row=await shown_run(service.store, row),
        now=now,
        live=live,
        names=NAMES,
        refresh=REFRESH if live else None,
        ended=row.status in ENDED,
        visits=[]
        if line is None
        else [_visit_line(visit, line.graph, now) for visit in line.visits.all()[-VISITS:]],
        left_out=0 if line is None else line.visits.left_out + max(len(line.visits.all()) - VISITS, 0),
        drawn=line is not None,
        damage="" if line is None else line.damage,
        holds=sorted(holds, key=lambda each: (each.status != "pending", each.created_at)),
        state=await _state(service, row),
        csrf=call.who.csrf,
        may_write=call.who.may(Right.runs_write) and not row.read_only,
    )


@routes.post("/runs/{run}", needs=Right.runs_write)
async def act_on_run_page(call: ApiCall, run: str) -> Response:
    """Cancels a run, or resumes one that failed or was interrupted."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    act = str((await call.form("act")).get("act") or "")
    if act == "cancel":
        await service.cancel(row.id, reason="cancelled on its page", by=call.actor.id)
    elif act == "resume":
        await service.request_resume(row.id)
    else:
        raise HttpError(422, "this page has no such action.", code="invalid_input")
    return redirect(f"/runs/{row.id}", call.request)


class DrawingQuery(msgspec.Struct, kw_only=True):
    """`at`: the last event that the page knows, so that the browser reads a newer drawing."""

    at: str = ""


@routes.get("/runs/{run}/drawing.svg", needs=Right.runs_read)
async def run_drawing(call: ApiCall, run: str, query: DrawingQuery) -> Response:
    """The run's graph, with the state of each node."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    line = await make_timeline(service, row, keep=0)
    return drawing(await draw(call, lambda: svg_of_run(line)))


def drawing(svg: str) -> Response:
    return Response(svg, media_type="image/svg+xml", headers={"Content-Security-Policy": SVG_POLICY})


async def _holds(call: ApiCall, row: RunRow) -> list[HoldRow]:
    """The holds that this person may see: the right to see a run does not include holds of others."""
    if not call.who.may(Right.holds_read):
        return []
    people, where = await call.holds(), HoldFilter(run=(row.id,), status=tuple(HoldStatus))
    found = [
        (await people.list(call.actor, view=view, where=where, limit=HOLDS)).rows
        for view in ("all", "breakpoints")
    ]
    return [each for rows in found for each in rows]


async def _timeline(service: RunService, row: RunRow) -> Timeline | None:
    """None if the graph is not stored."""
    try:
        return await make_timeline(service, row, keep=VISITS)
    except FlowNotFoundError:
        return None


async def _state(service: RunService, row: RunRow) -> dict[str, Any]:
    """The current state without secrets; empty if it cannot be read."""
    try:
        found = (await service.latest(row.id)).shown()
    except (CheckpointNotFoundError, FlowNotFoundError, StoreError):
        return {}
    return {"input": msgspec.to_builtins(found.input), **msgspec.to_builtins(dict(found.state))}


def _visit_line(visit: Visit, graph: Graph, now: int) -> dict[str, Any]:
    error = visit.last_error_text
    return {
        "node": shown_name(visit.label, graph),
        "visit": visit.visit,
        "state": visit.state,
        "started_at": visit.started_at,
        "took": human_duration((visit.ended_at or now) - visit.started_at),
        "ended": visit.ended_at is not None,
        "attempts": visit.attempts,
        "waited": waiting_text(visit, now),
        "error": error,
        "said": visit.said,
        "progress": visit.progress,
    }
