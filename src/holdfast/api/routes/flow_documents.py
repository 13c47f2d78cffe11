"""Documents of flows: their bytes, their layout, which version is current, what differs, what would break."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Any, Final

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Access, Right
from holdfast.api.draw import draw
from holdfast.api.problems import HttpError
from holdfast.api.routes.flows import find_version, flow_check, get_flow, require_graph
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.files import attachment
from holdfast.api.schemas.flows import (
    ActivateFlow,
    Arrangement,
    DiffFlow,
    DocumentQuery,
    FlowCheck,
    FlowDiff,
    FlowLayout,
    FlowWire,
    ValidateFlow,
)
from holdfast.documents.compare import compare_documents
from holdfast.documents.deploy import DeployedFlows, checks
from holdfast.documents.picture import arrange_document
from holdfast.documents.program import program_to_start
from holdfast.drawing import from_graph
from holdfast.drawing.node_boxes import NodeBox, positions_of
from holdfast.errors import (
    DocumentChangedError,
    FlowInvalidError,
    FlowNotFoundError,
    InputError,
    NoDocumentError,
)
from holdfast.frontends.document.document import FlowDocument
from holdfast.frontends.document.dump import dump_document
from holdfast.frontends.document.json_schema import SCHEMA_VERSION, flow_schema
from holdfast.frontends.document.layout import layout_of
from holdfast.frontends.document.problem import require_valid_document
from holdfast.model.graph import Graph

routes = Routes("flows")

_MISSING: Final = (FlowNotFoundError, NoDocumentError)
_MEDIA: Final = {"json": "application/json", "yaml": "application/yaml"}
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")
_SHARED: Final = {"Cache-Control": "public, max-age=3600", "Access-Control-Allow-Origin": "*"}
"""Of what is the same for every caller. Editors in a browser read it from their own origin."""


@routes.get("/schemas/flow/{version}", needs=Access.public, more=(304,))
async def get_flow_schema(call: ApiCall, version: str) -> ApiReply[dict[str, Any]]:
    """The JSON Schema (2020-12) of flow documents, for editors: completion, and problems while one types.
    `version` is the major version of the format. It needs no credential: it says nothing about a tenant."""
    if version != SCHEMA_VERSION:
        raise HttpError(
            404, f"there is no version {version!r} of this schema.", code="not_found",
            hint=f"GET /v1/schemas/flow/{SCHEMA_VERSION}.",
        )  # fmt: skip
    return ApiReply(body=flow_schema(), headers=_SHARED, etag=_schema_digest())


@cache
def _schema_digest() -> str:
    return sha256(msgspec.json.encode(flow_schema())).hexdigest()[:32]


@routes.get(
    "/flows/{flow:path}/versions/{version}/document",
    needs=Right.flows_read,
    media=("application/yaml", "application/json"),
    raises=_MISSING,
)
async def get_flow_document(call: ApiCall, flow: str, version: str, query: DocumentQuery) -> Response:
    """The document of a version: the bytes that were sent, or written anew as JSON or YAML with its present
    layout. 404 `no_document` for a flow that comes from code."""
    deployed, found = await _deployed(call, flow, version)
    document = await deployed.document(flow, found)
    if query.format == "source":
        sent = await deployed.sent(flow, found)
        assert sent is not None
        return attachment(sent.raw, _MEDIA[sent.format], f"{flow}.{sent.format}")
    text = await checks.run(call.tenant, dump_document, document, query.format)
    return attachment(text.encode(), _MEDIA[query.format], f"{flow}.{query.format}")


async def _deployed(call: ApiCall, flow: str, version: str) -> tuple[DeployedFlows, str]:
    """Raises FlowNotFoundError for one that the tenant cannot see, NoDocumentError."""
    row, _ = await find_version(call, flow, version)
    deployed = DeployedFlows(await call.runs(), call.tenant)
    if not await deployed.has(flow, row.version):
        raise NoDocumentError(
            f"version {row.version} of flow {flow!r} was not deployed as a document.",
            hint=f"GET /v1/flows/{flow}/versions/{row.version} returns its graph.",
            flow=flow,
        )
    return deployed, row.version


@routes.get(
    "/flows/{flow:path}/versions/{version:path}/layout", needs=Right.flows_read, more=(304,), raises=_MISSING
)
async def get_flow_layout(call: ApiCall, flow: str, version: str) -> ApiReply[FlowLayout]:
    """How a document is drawn. Its ETag changes with each change of the layout."""
    deployed, found = await _deployed(call, flow, version)
    revision = await deployed.layout_revision(flow, found)
    return _layout(await deployed.document(flow, found), revision)


def _layout(document: FlowDocument, revision: int) -> ApiReply[FlowLayout]:
    return ApiReply(body=msgspec.convert(layout_of(document), FlowLayout), etag=f"layout-{revision}")


@routes.put(
    "/flows/{flow:path}/versions/{version:path}/layout",
    needs=Right.flows_write,
    must_match=True,
    raises=(*_MISSING, InputError, FlowInvalidError, DocumentChangedError),
)
async def put_flow_layout(call: ApiCall, flow: str, version: str, body: FlowLayout) -> ApiReply[FlowLayout]:
    """Replace the layout of a document. What it does, its version and its bytes stay as they are. 428 without
    `If-Match`."""
    deployed, found = await _deployed(call, flow, version)
    revision = await deployed.layout_revision(flow, found)
    call.require_match(f"layout-{revision}", required=True)
    document = await deployed.put_layout(flow, found, msgspec.to_builtins(body), expect=revision)
    return _layout(document, revision + 1)


@routes.post("/flows/{flow:path}/activate", needs=Right.flows_write, raises=_MISSING)
async def activate_flow(call: ApiCall, flow: str, body: ActivateFlow) -> FlowWire:
    """Make a version the current one: new runs start on it, runs that exist keep theirs."""
    deployed, found = await _deployed(call, flow, body.version)
    await deployed.activate(flow, found, by=call.actor.id)
    return await get_flow(call, flow)


@routes.post("/flows/{flow:path}/diff", needs=Right.flows_read, raises=(*_MISSING, FlowInvalidError))
async def diff_flow(call: ApiCall, flow: str, body: DiffFlow) -> FlowDiff:
    """What differs between two versions of a document, or a version and a document that is sent: nodes by
    id, edges, settings, each with both values; layout apart."""
    deployed, since = await _deployed(call, flow, body.since)
    before = await deployed.document(flow, since)
    sent = body.sent
    if sent is not None:
        read = await checks.run(call.tenant, sent.read)
        require_valid_document(flow, read.problems())
        assert read.document is not None
        after = read.document
    else:
        _, to = await _deployed(call, flow, body.to or "")
        after = await deployed.document(flow, to)
    found = await checks.run(call.tenant, compare_documents, before, after)
    return msgspec.convert(msgspec.to_builtins(found), FlowDiff)


@routes.post("/flows/arrange", needs=Right.flows_read, raises=(FlowInvalidError, InputError), raw=_YAML)
async def arrange_flow(call: ApiCall, body: ValidateFlow) -> Arrangement:
    """Where a canvas may place the nodes of a document or a graph: top down, with few crossings
    unless it is very large and dense. Nothing is stored, and positions that the document has are not read.
    """
    if body.sent is None and body.graph is None:
        raise InputError("send a document or a graph.", hint="GET a version of a flow returns its graph.")
    boxes = await draw(call, lambda: _boxes(body))
    return msgspec.convert(msgspec.to_builtins({"nodes": boxes}), Arrangement)


def _boxes(body: ValidateFlow) -> dict[str, NodeBox]:
    if body.sent is None:
        return positions_of(from_graph(Graph(require_graph(body.graph)), expand=True))
    read = body.sent.read()
    if read.document is None:
        require_valid_document("?", read.problems())
    assert read.document is not None
    return arrange_document(read.document)


@routes.post("/flows/check", needs=Right.flows_read, raises=(FlowInvalidError, InputError), raw=_YAML)
async def check_document(call: ApiCall, body: ValidateFlow) -> FlowCheck:
    """Whether the live runs of a flow would fit a document that is not deployed yet, and why not. They keep
    their version until they are migrated."""
    if body.sent is None:
        raise InputError("send a document.", hint="GET /v1/flows/{flow}/check checks the code of a flow.")
    service = await call.runs()
    compiled = await DeployedFlows(service, call.tenant).compile(body.sent)
    program = program_to_start(compiled.require_valid())
    verdicts = await service.check(program)
    return await flow_check(call, program, verdicts)
