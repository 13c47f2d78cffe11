"""Flows: versions, graphs, registration, validation, and the check against active runs."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.draw import draw
from holdfast.api.pagination import Page
from holdfast.api.pipelines import marked_submitted, require_no_document
from holdfast.api.program_lookup import (
    document_of_file,
    find_program,
    is_version_named,
    is_visible_to_tenant,
)
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.files import drawing
from holdfast.api.schemas.flows import (
    FlowCheck,
    FlowGraph,
    FlowSource,
    FlowValidation,
    FlowWire,
    RegisterFlow,
    ValidateFlow,
    document_problem,
    flow_problem,
    run_fit_wire,
    version_of,
)
from holdfast.documents.deploy import DeployedFlows, SentDocument, require_not_document
from holdfast.drawing import from_graph
from holdfast.drawing.svg import to_svg
from holdfast.errors import (
    CodeRequiredError,
    FlowInvalidError,
    FlowNameTakenError,
    FlowNotFoundError,
    ForbiddenError,
    InputError,
)
from holdfast.frontends.document.compile import DIALECT as DOCUMENTS
from holdfast.model.diagnostics import errors_in, require_valid
from holdfast.model.fingerprint import CODED, dialect_of, encode_graph, graph_fingerprint
from holdfast.model.graph import Graph, GraphSpec
from holdfast.model.program import Program
from holdfast.model.validate import validate
from holdfast.runs.flow_versions import flow_summary, graph_of, newest_first, put_posted, require_free_name
from holdfast.runs.migrate.check import MigrationReport
from holdfast.runs.service import RunService
from holdfast.runs.unserved import serves
from holdfast.store.rows import FlowRow
from holdfast.types.fleet import WorkerRow

routes = Routes("flows")

_MISSING = (FlowNotFoundError,)


@routes.get("/flows", needs=Right.flows_read)
async def list_flows(call: ApiCall) -> Page[FlowWire]:
    """All flows in the store, by name, with their versions."""
    service = await call.runs()
    deployed = DeployedFlows(service, call.tenant)
    found: dict[str, list[FlowRow]] = {}
    workers = await _live_workers(service)
    for row in await newest_first(service, await _rows(service)):
        if await is_visible_to_tenant(call, row.name, row.version):
            found.setdefault(row.name, []).append(row)
    items = [
        await _flow(service, name, rows, workers, await deployed.current(name))
        for name, rows in sorted(found.items())
    ]
    return Page(items=items)


@routes.get("/flows/{flow:path}", needs=Right.flows_read, raises=_MISSING)
async def get_flow(call: ApiCall, flow: str) -> FlowWire:
    """A flow's versions, newest first. Versions of its code come before graphs that were posted."""
    service = await call.runs()
    workers = await _live_workers(service)
    current = await DeployedFlows(service, call.tenant).current(flow)
    return await _flow(service, flow, await _versions(call, flow), workers, current)


async def _live_workers(service: RunService) -> list[WorkerRow]:
    now = service.store.now()
    return [row for row in await service.store.workers() if row.is_alive(now)]


async def _flow(
    service: RunService, name: str, rows: list[FlowRow], workers: list[WorkerRow], activated: str | None
) -> FlowWire:
    """`activated`: the version of a deployed document that is current; code comes before it."""
    coded = dialect_of(rows[0].version) == CODED
    current = rows[0].version if coded or activated is None else activated
    shown = next((row for row in rows if row.version == current), rows[0])
    summary = await flow_summary(service, shown)
    known = [service.runtime.programs[row.version] for row in rows if row.version in service.runtime.programs]
    described = (program.description for program in known if program.description)
    versions = [
        version_of(
            row,
            await flow_summary(service, row),
            loaded=row.version in service.runtime.programs,
            workers=sum(serves(worker, row.version) for worker in workers),
            current=row.version == current,
            document=dialect_of(row.version) == DOCUMENTS,
        )
        for row in rows
    ]
    return FlowWire(
        name=name,
        versions=versions,
        description=summary.description or next(described, "") or summary.goal,
        input_schema=summary.input_schema,
    )


async def _rows(service: RunService) -> list[FlowRow]:
    """Stored flows, and loaded flows that have not been run yet; without their graphs."""
    stored = await service.store.flows(graphs=False)
    known = {(row.name, row.version) for row in stored}
    loaded = [p for p in service.runtime.programs.values() if (p.graph.name, p.version) not in known]
    now = service.store.now()
    return stored + [FlowRow(name=p.graph.name, version=p.version, graph=b"", created_at=now) for p in loaded]


async def _versions(call: ApiCall, flow: str) -> list[FlowRow]:
    named = [row for row in await _rows(await call.runs()) if row.name == flow]
    rows = [row for row in named if await is_visible_to_tenant(call, flow, row.version)]
    if not rows:
        raise FlowNotFoundError(
            f"there is no flow {flow!r} here.", hint="GET /v1/flows lists them.", flow=flow
        )
    return await newest_first(await call.runs(), rows)


async def find_version(call: ApiCall, flow: str, version: str) -> tuple[FlowRow, GraphSpec]:
    """By its fingerprint, a prefix of it, its label, or `latest`: the newest of its code, if it has code.
    `current`: the version of a document that new runs start on. Raises FlowNotFoundError."""
    if version == "current":
        version = await DeployedFlows(await call.runs(), call.tenant).current(flow) or "latest"
    service = await call.runs()
    for row in await _versions(call, flow):
        if version == "latest" or is_version_named(
            version, row.version, (await flow_summary(service, row)).label
        ):
            spec = (await graph_of(service, row)).spec
            return msgspec.structs.replace(row, graph=encode_graph(spec)), spec
    raise FlowNotFoundError(
        f"there is no version {version!r} of flow {flow!r} here.", hint="GET /v1/flows lists them.", flow=flow
    )


@routes.get("/flows/{flow:path}/versions/{version}", needs=Right.flows_read, more=(304,), raises=_MISSING)
async def get_flow_version(call: ApiCall, flow: str, version: str) -> ApiReply[FlowGraph]:
    """The graph of a version: by its fingerprint, its label, or `latest`."""
    row, spec = await find_version(call, flow, version)
    return ApiReply(body=_graph(row, spec), etag=row.version)


def _graph(row: FlowRow, spec: GraphSpec) -> FlowGraph:
    return FlowGraph(
        name=row.name,
        version=row.version,
        label=Graph(spec).label,
        created_at=moment(row.created_at) or "",
        graph=msgspec.json.decode(row.graph),
    )


@routes.get("/flows/{flow:path}/versions/{version}/input-schema", needs=Right.flows_read, raises=_MISSING)
async def get_input_schema(call: ApiCall, flow: str, version: str) -> ApiReply[dict[str, Any]]:
    """The JSON Schema of the input that a version takes; empty if it does not say."""
    row, _ = await find_version(call, flow, version)
    summary = await flow_summary(await call.runs(), row)
    return ApiReply(body=summary.input_schema, etag=row.version)


@routes.get(
    "/flows/{flow:path}/versions/{version}/drawing",
    needs=Right.flows_read,
    media=("image/svg+xml",),
    raises=(*_MISSING, InputError),
)
async def get_flow_drawing(call: ApiCall, flow: str, version: str) -> Response:
    """The graph of a version, as SVG."""
    _, spec = await find_version(call, flow, version)
    return drawing(await draw(call, lambda: to_svg(from_graph(Graph(spec)))))


@routes.get("/flows/{flow:path}/check", needs=Right.flows_read, raises=(FlowNotFoundError, InputError))
async def check_flow(call: ApiCall, flow: str) -> FlowCheck:
    """Whether active runs on other versions fit the version that new runs start on, and why not."""
    service = await call.runs()
    named = [p for p in service.runtime.programs.values() if p.graph.name == flow]
    # A worker of this server loads the documents of every tenant that it runs.
    loaded = [p for p in named if await is_visible_to_tenant(call, flow, p.version)]
    if not loaded and await DeployedFlows(service, call.tenant).current(flow) is None:
        await _versions(call, flow)
        raise InputError(
            f"the code of flow {flow!r} is not loaded here, so there is nothing to check runs against.",
            hint="Start the server with the file that defines it.",
        )
    program = await find_program(call, flow)
    return await flow_check(call, program, await service.check(program))


async def flow_check(call: ApiCall, program: Program, verdicts: list[MigrationReport]) -> FlowCheck:
    """Of the caller's own runs."""
    store = (await call.runs()).store
    own: list[Any] = []
    for verdict in verdicts:
        row = await store.get_run(verdict.run)
        if row is not None and row.tenant == call.tenant:
            own.append(run_fit_wire(verdict))
    fits = sum(each.fits for each in own)
    name = program.graph.name
    return FlowCheck(flow=name, version=program.version, fits=fits, breaks=len(own) - fits, runs=own)


_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_REFUSED = (FlowInvalidError, FlowNotFoundError, ForbiddenError)


@routes.post("/flows/validate", needs=Right.flows_write, raises=(*_REFUSED, CodeRequiredError), raw=_YAML)
async def validate_flow(call: ApiCall, body: ValidateFlow) -> FlowValidation:
    """All problems of a flow, each with its position and fix. Nothing is stored or run.

    Send a document (its text as the body with `application/yaml`, or in JSON), a graph, or the name of a
    flow."""
    sent = _sent(call, body)
    if sent is not None:
        compiled = await DeployedFlows(await call.runs(), call.tenant).compile(sent)
        return FlowValidation(
            valid=compiled.spec is not None,
            name=compiled.name,
            version="" if compiled.spec is None else graph_fingerprint(compiled.spec),
            problems=[document_problem(each) for each in compiled.problems],
            ports={name: list(ports) for name, ports in compiled.ports.items()},
        )
    if body.flow is not None:
        spec = (await find_program(call, body.flow)).graph.spec
    else:
        spec = require_graph(body.graph)
    problems = [*validate(spec), *(await call.hf.queues()).queue_problems(spec)]
    return FlowValidation(
        valid=not errors_in(problems),
        name=spec.name,
        version=graph_fingerprint(spec),
        problems=[flow_problem(each) for each in problems],
    )


def _sent(call: ApiCall, body: FlowSource) -> SentDocument | None:
    return body.sent or (document_of_file(call, body.flow) if body.flow is not None else None)


def require_graph(graph: Any) -> GraphSpec:
    """Raises FlowInvalidError."""
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
    raises=(*_REFUSED, FlowNameTakenError, CodeRequiredError),
    raw=_YAML,
)
async def register_flow(call: ApiCall, body: RegisterFlow) -> ApiReply[FlowGraph]:
    """Store a version of a flow: 201, or 200 if it is already stored.

    A document (its text as the body with `application/yaml`, and `dry_run` and `activate` in the query; or in
    JSON) can be started at once, by any worker: 422 with every problem in `errors`, each with its place and
    fix. A known version stays as it is, and becomes current only with `activate: true`. A graph is data and
    contains no code: its runs advance on workers that have code with the same graph.
    409 `name_taken` if a flow of that name comes from code and has another graph."""
    sent = _sent(call, body)
    if sent is not None:
        return await _deploy(call, sent, dry_run=body.dry_run, activate=body.activate)
    if body.dry_run:
        raise InputError("a dry run is for documents.", hint="POST /v1/flows/validate checks a graph.")
    return await _register(call, body)


async def _deploy(
    call: ApiCall, sent: SentDocument, *, dry_run: bool, activate: bool | None
) -> ApiReply[FlowGraph]:
    deployed = DeployedFlows(await call.runs(), call.tenant)
    result = await deployed.deploy(sent, by=call.actor.id, dry_run=dry_run, activate=activate)
    about, new = result.version, result.new and result.stored
    where = f"/v1/flows/{quote(about.flow, safe='')}/versions/{about.version}"
    return ApiReply(
        body=FlowGraph(
            name=about.flow,
            version=about.version,
            label=Graph(result.spec).label,
            created_at=moment(about.created_at) or "",
            graph=msgspec.json.decode(encode_graph(result.spec)),
            current=result.current,
            stored=result.stored,
            problems=[document_problem(each) for each in result.problems],
        ),
        status=201 if new else 200,
        headers=call.location(where) if new else {},
        etag=about.version,
    )


async def _register(call: ApiCall, body: RegisterFlow) -> ApiReply[FlowGraph]:
    service = await call.runs()
    if body.flow is not None:
        program = await find_program(call, body.flow)
        spec, version = program.graph.spec, program.version
    else:
        spec = marked_submitted(require_graph(body.graph))
        require_not_document(spec)
        require_valid(spec.name, validate(spec))
        version = graph_fingerprint(spec)
        require_no_document(version, call.settings)
    (await call.hf.queues()).require_queues(spec)
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
