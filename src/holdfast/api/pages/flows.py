"""Flows: the stored ones, each with its graph and a form to start it."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.draw import draw
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.render import page, redirect
from holdfast.api.pages.runs import drawing
from holdfast.api.problems import status_of
from holdfast.api.program_lookup import is_visible_to_tenant
from holdfast.api.routing import ApiCall
from holdfast.api.schemas.input_guard import require_outside
from holdfast.api.strict_json import decode_strictly
from holdfast.documents.deploy import DeployedFlows
from holdfast.documents.program import program_to_start
from holdfast.drawing import from_graph, to_svg
from holdfast.errors import FlowNotFoundError, HoldfastError, InputError
from holdfast.model.fingerprint import decode_graph
from holdfast.model.graph import Graph
from holdfast.model.program import Program
from holdfast.runs.flow_versions import newest_first
from holdfast.runs.run_view import shown_runs
from holdfast.store.rows import RunFilter

routes = pages()
RUNS: Final = 10


@routes.get("/flows", needs=Right.flows_read)
async def flows_page(call: ApiCall) -> Response:
    """The stored flows, by name."""
    service = await call.runs()
    newest: dict[str, Any] = {}
    versions: dict[str, int] = {}
    for flow in await newest_first(service, await service.store.flows(graphs=False)):
        if await is_visible_to_tenant(call, flow.name, flow.version):
            versions[flow.name] = versions.get(flow.name, 0) + 1
            newest.setdefault(flow.name, flow)
    rows = [
        (name, newest[name], versions[name], await _program(call, name) is not None)
        for name in sorted(newest)
    ]
    return page(call.request, "flows.html", who=call.who, rows=rows, now=service.store.now())


@routes.get("/flows/{flow:path}", needs=Right.flows_read)
async def flow_page(call: ApiCall, flow: str) -> Response:
    """A flow: its graph, its latest runs, and a form to start it."""
    return await _show(call, flow, "{}", None)


@routes.post("/flows/{flow:path}", needs=Right.runs_write)
async def start_page(call: ApiCall, flow: str) -> Response:
    """Starts a run of it."""
    service, form = await call.runs(), await call.form("input")
    text = str(form.get("input") or "").strip() or "{}"
    try:
        program = await _require(call, flow)
        row, _ = await service.create(
            program,
            _object(text),
            tenant=call.tenant,
            started_by=call.actor.id,
            started_via=call.actor.people,
        )
    except HoldfastError as error:
        return await _show(call, flow, text, error)
    return redirect(f"/runs/{row.id}", call.request)


@routes.get("/flows/{flow:path}/drawing.svg", needs=Right.flows_read)
async def flow_drawing(call: ApiCall, flow: str) -> Response:
    """The graph of its newest version."""
    graph = await _graph(call, flow)
    return drawing(await draw(call, lambda: to_svg(from_graph(graph))))


async def _show(call: ApiCall, flow: str, text: str, error: HoldfastError | None) -> Response:
    service = await call.runs()
    await _graph(call, flow)
    runs = []
    if call.who.may(Right.runs_read):
        runs = await service.list(RunFilter(tenant=call.tenant, flow=flow), limit=RUNS)
    return page(
        call.request,
        "flow.html",
        who=call.who,
        status=200 if error is None else status_of(error),
        flow=flow,
        runs=await shown_runs(service.store, runs),
        now=service.store.now(),
        error=error,
        text=text,
        may_start=call.who.may(Right.runs_write) and await _program(call, flow) is not None,
        csrf=call.who.csrf,
    )


def loaded_program(call: ApiCall, name: str) -> Program | None:
    """The version that this server has loaded, if any."""
    found = [each for each in call.hf.programs.values() if each.graph.name == name]
    return found[-1] if found else None


async def _program(call: ApiCall, name: str) -> Program | None:
    """What a run is started on: the code that is loaded here, else the document that the tenant deployed."""
    found = loaded_program(call, name)
    if found is not None and not found.graph.dialect:
        return found
    deployed = DeployedFlows(await call.runs(), call.tenant)
    document = await deployed.find(name)
    if document is not None:
        return program_to_start(await deployed.spec(name, document.version))
    return found if found and await is_visible_to_tenant(call, name, found.version) else None


async def _require(call: ApiCall, name: str) -> Program:
    found = await _program(call, name)
    if found is None:
        raise FlowNotFoundError(
            f"this server was not started with flow {name!r}, and no document of that name is deployed.",
            hint="Start it with: holdfast serve FLOW; or deploy a document.",
        )
    return found


def _object(text: str) -> dict[str, Any]:
    try:
        found = decode_strictly(text, dict[str, Any], "input")
    except msgspec.ValidationError as error:
        raise InputError(f"the input is not a JSON object: {error}.", hint='Write {"id": "x"}.') from error
    require_outside(found)
    return found


async def _graph(call: ApiCall, name: str) -> Graph:
    service = await call.runs()
    named = [flow for flow in await service.store.flows() if flow.name == name]
    found = [flow for flow in named if await is_visible_to_tenant(call, name, flow.version)]
    if not found:
        raise FlowNotFoundError(f"there is no flow {name!r} here.", hint="/flows lists them.")
    return Graph(decode_graph((await newest_first(service, found))[0].graph))
