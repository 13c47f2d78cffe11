"""Flows: versions, graphs, registration, validation, and the check against active runs."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page
from holdfast.api.pipelines import marked_submitted, require_no_document
from holdfast.api.program_lookup import find_program, is_version_named, is_visible_to_tenant
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.files import drawing
from holdfast.api.schemas.flows import (
    FlowCheck,
    FlowGraph,
    FlowValidation,
    FlowVersion,
    FlowWire,
    RegisterFlow,
    ValidateFlow,
    flow_problem,
    run_fit_wire,
    version_of,
)
from holdfast.drawing import from_graph
from holdfast.drawing.svg import to_svg
from holdfast.errors import (
    FlowInvalidError,
    FlowNameTakenError,
    FlowNotFoundError,
    ForbiddenError,
    InputError,
)
from holdfast.model.diagnostics import errors_in, require_valid
from holdfast.model.fingerprint import decode_graph, dialect_of, encode_graph, graph_fingerprint
from holdfast.model.graph import Graph, GraphSpec
from holdfast.model.input_schema import input_schema
from holdfast.model.validate import validate
from holdfast.runs.flow_versions import newest_first, put_posted, require_free_name
from holdfast.runs.service import RunService
from holdfast.store.rows import FlowRow

routes = Routes("flows")

_MISSING = (FlowNotFoundError,)


@routes.get("/flows", needs=Right.flows_read)
async def list_flows(call: ApiCall) -> Page[FlowWire]:
    """All flows in the store, by name, with their versions."""
    service = await call.runs()
    found: dict[str, list[FlowRow]] = {}
    workers = await _workers_by_version(service)
    for row in await newest_first(service, await _rows(service)):
        if await is_visible_to_tenant(call, row.name, row.version):
            found.setdefault(row.name, []).append(row)
    return Page(items=[_flow(service, name, rows, workers) for name, rows in sorted(found.items())])


@routes.get("/flows/{flow:path}", needs=Right.flows_read, raises=_MISSING)
async def get_flow(call: ApiCall, flow: str) -> FlowWire:
    """A flow's versions, newest first. Versions of its code come before graphs that were posted."""
    service = await call.runs()
    workers = await _workers_by_version(service)
    return _flow(service, flow, await _versions(call, flow), workers)


async def _workers_by_version(service: RunService) -> Counter[str]:
    """How many live workers serve each version."""
    now = service.store.now()
    alive = [row for row in await service.store.workers() if row.until > now]
    found = Counter(version for row in alive for version in row.versions)
    # Pipelines need no code except their stored graph.
    return found + Counter(dict.fromkeys(service.runtime.dialects, len(alive)))


def _version(service: RunService, row: FlowRow, workers: Counter[str]) -> FlowVersion:
    return version_of(
        row,
        loaded=row.version in service.runtime.programs,
        workers=workers[row.version] or workers[dialect_of(row.version)],
    )


def _flow(service: RunService, name: str, rows: list[FlowRow], workers: Counter[str]) -> FlowWire:
    spec = decode_graph(rows[0].graph)
    known = [service.runtime.programs[row.version] for row in rows if row.version in service.runtime.programs]
    described = (program.description for program in known if program.description)
    return FlowWire(
        name=name,
        versions=[_version(service, row, workers) for row in rows],
        description=next(described, "") or str(spec.defaults.get("graph.goal") or ""),
        input_schema=input_schema(spec),
    )


async def _rows(service: RunService) -> list[FlowRow]:
    """Stored flows, and loaded flows that have not been run yet."""
    stored = await service.store.flows()
    known = {(row.name, row.version) for row in stored}
    loaded = [p for p in service.runtime.programs.values() if (p.graph.name, p.version) not in known]
    now = service.store.now()
    return stored + [
        FlowRow(name=p.graph.name, version=p.version, graph=encode_graph(p.graph.spec), created_at=now)
        for p in loaded
    ]


async def _versions(call: ApiCall, flow: str) -> list[FlowRow]:
    named = [row for row in await _rows(await call.runs()) if row.name == flow]
    rows = [row for row in named if await is_visible_to_tenant(call, flow, row.version)]
    if not rows:
        raise FlowNotFoundError(
            f"there is no flow {flow!r} here.", hint="GET /v1/flows lists them.", flow=flow
        )
    return await newest_first(await call.runs(), rows)


async def _find_version(call: ApiCall, flow: str, version: str) -> tuple[FlowRow, GraphSpec]:
    """By its fingerprint, a prefix of it, its label, or `latest`: the newest of its code, if it has code."""
    for row in await _versions(call, flow):
        spec = decode_graph(row.graph)
        if version == "latest" or is_version_named(version, row.version, Graph(spec).label):
            return row, spec
    raise FlowNotFoundError(
        f"there is no version {version!r} of flow {flow!r} here.", hint="GET /v1/flows lists them.", flow=flow
    )


@routes.get("/flows/{flow:path}/versions/{version}", needs=Right.flows_read, more=(304,), raises=_MISSING)
async def get_flow_version(call: ApiCall, flow: str, version: str) -> ApiReply[FlowGraph]:
    """The graph of a version: by its fingerprint, its label, or `latest`."""
    row, spec = await _find_version(call, flow, version)
    return ApiReply(body=_graph(row, spec), etag=row.version)


def _graph(row: FlowRow, spec: GraphSpec) -> FlowGraph:
    return FlowGraph(
        name=row.name,
        version=row.version,
        label=Graph(spec).label,
        created_at=moment(row.created_at) or "",
        graph=msgspec.json.decode(row.graph),
    )


@routes.get(
    "/flows/{flow:path}/versions/{version}/drawing",
    needs=Right.flows_read,
    media=("image/svg+xml",),
    raises=_MISSING,
)
async def get_flow_drawing(call: ApiCall, flow: str, version: str) -> Response:
    """The graph of a version, as SVG."""
    _, spec = await _find_version(call, flow, version)
    return drawing(to_svg(from_graph(Graph(spec))))


@routes.get("/flows/{flow:path}/check", needs=Right.flows_read, raises=(FlowNotFoundError, InputError))
async def check_flow(call: ApiCall, flow: str) -> FlowCheck:
    """Whether active runs on other versions fit the newest version loaded here, and why not."""
    service = await call.runs()
    loaded = [p for p in service.runtime.programs.values() if p.graph.name == flow]
    if not loaded:
        await _versions(call, flow)
        raise InputError(
            f"the code of flow {flow!r} is not loaded here, so there is nothing to check runs against.",
            hint="Start the server with the file that defines it.",
        )
    program = loaded[-1]
    own: list[Any] = []
    for verdict in await service.check(program):
        row = await service.store.get_run(verdict.run)
        if row is not None and row.tenant == call.tenant:
            own.append(run_fit_wire(verdict))
    fits = sum(each.fits for each in own)
    return FlowCheck(flow=flow, version=program.version, fits=fits, breaks=len(own) - fits, runs=own)


@routes.post(
    "/flows/validate", needs=Right.flows_write, raises=(FlowInvalidError, FlowNotFoundError, ForbiddenError)
)
async def validate_flow(call: ApiCall, body: ValidateFlow) -> FlowValidation:
    """All problems of a flow, each with its position and fix. Nothing is stored or run."""
    if (body.graph is None) == (body.flow is None):
        raise InputError("send a graph, or the flow's name or file.", hint="Send one of them.")
    if body.flow is not None:
        spec = (await find_program(call, body.flow)).graph.spec
    else:
        spec = _spec(body.graph)
    problems = validate(spec)
    return FlowValidation(
        valid=not errors_in(problems),
        name=spec.name,
        version=graph_fingerprint(spec),
        problems=[flow_problem(each) for each in problems],
    )


def _spec(graph: Any) -> GraphSpec:
    try:
        return msgspec.convert(graph, GraphSpec)
    except msgspec.ValidationError as error:
        raise FlowInvalidError(
            f"this is not a graph: {error}.", hint="GET a version of a flow returns one."
        ) from error


@routes.post(
    "/flows",
    needs=Right.flows_write,
    status=201,
    more=(200,),
    raises=(FlowInvalidError, FlowNotFoundError, ForbiddenError, FlowNameTakenError),
)
async def register_flow(call: ApiCall, body: RegisterFlow) -> ApiReply[FlowGraph]:
    """Store a version of a flow: 201, or 200 if it is already stored.

    A graph is data and contains no code. Its runs advance on workers that have code with the same graph. 409
    `name_taken` if a flow of that name comes from code and has another graph."""
    if (body.graph is None) == (body.flow is None):
        raise InputError("send a graph, or the flow's name or file.", hint="Send one of them.")
    service = await call.runs()
    if body.flow is not None:
        program = await find_program(call, body.flow)
        spec, version = program.graph.spec, program.version
    else:
        spec = marked_submitted(_spec(body.graph))
        require_valid(spec.name, validate(spec))
        version = graph_fingerprint(spec)
        require_no_document(version, call.settings)
    known = await service.store.flow(spec.name, version)
    if known is not None:
        return ApiReply(body=_graph(known, spec), status=200, etag=version)
    row = FlowRow(name=spec.name, version=version, graph=encode_graph(spec), created_at=service.store.now())
    if body.flow is not None:
        await service.store.put_flow(row)
    else:
        await require_free_name(service, spec.name, version)
        await put_posted(service.store, row)
    where = call.location(f"/v1/flows/{quote(spec.name, safe='')}/versions/{version}")
    return ApiReply(body=_graph(row, spec), status=201, headers=where, etag=version)
