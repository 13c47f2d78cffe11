"""Finds the `flow` of a request: a flow that is loaded here, one in the store, or a file that the operator
allows (R-67)."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from holdfast.api.routing import ApiCall
from holdfast.app.loader import load_flow
from holdfast.documents.deploy import DeployedFlows, SentDocument, is_version
from holdfast.documents.program import program_to_start
from holdfast.errors import CodeRequiredError, FlowNotFoundError, ForbiddenError, HoldfastError, InputError
from holdfast.frontends.document.compile import DIALECT as DOCUMENTS
from holdfast.frontends.document.read import format_of
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.fingerprint import decode_graph, dialect_of
from holdfast.model.graph import Graph
from holdfast.model.program import Program
from holdfast.runs.flow_versions import newest_first
from holdfast.runs.stored_program import read_type, stored_program
from holdfast.store.rows import RunFilter
from holdfast.types.own_threads import in_thread

if TYPE_CHECKING:
    from holdfast.runs.service import RunService

_LOADING = Lock()


DOCUMENT_FILES = (".yaml", ".yml", ".json")


async def find_program(call: ApiCall, uri: str, version: str | None = None) -> Program:
    """`name`, `name@version` or a file. Code comes before the documents that the tenant deployed. Raises
    FlowNotFoundError, CodeRequiredError, ForbiddenError for a file outside the allowed folders, InputError.
    """
    if is_file(uri):
        return await _from_file(call, uri)
    name, at, written = uri.partition("@")
    if at and version is not None and written != version:
        raise InputError(f"{uri!r} names another version than {version!r}.", hint="Name it once.")
    wanted = written if at else version
    service = await call.runs()
    loaded = [p for p in service.runtime.programs.values() if p.graph.name == name]
    found = [p for p in loaded if wanted is None or is_version_named(wanted, p.version, p.graph.label)]
    # A submitted document does not replace code of the same name.
    code = [p for p in reversed(found) if not p.graph.dialect]
    if code:
        return code[0]
    deployed = DeployedFlows(service, call.tenant)
    document = await deployed.find(name, wanted)
    if document is not None:
        return program_to_start(await deployed.spec(name, document.version))
    for program in reversed(found):
        if await is_visible_to_tenant(call, name, program.version):
            return program
    return await _stored(call, service, name, wanted)


def is_file(uri: str) -> bool:
    """By its extension, or because it leads out of a folder: the name of a flow may have slashes."""
    leads_out = uri.startswith("/") or ".." in uri.split("/")
    return leads_out or uri.endswith((".py", ".dot", *DOCUMENT_FILES)) or ".py:" in uri


def document_of_file(call: ApiCall, uri: str) -> SentDocument | None:
    """The bytes of a flow document in the allowed folders; None if `uri` is no such file. Raises
    ForbiddenError, FlowNotFoundError."""
    if not uri.endswith(DOCUMENT_FILES):
        return None
    own = call.settings.tenant_roots.get(call.tenant, ())
    path = _allowed((*own, *call.settings.roots), uri)
    return SentDocument(raw=path.read_bytes(), format=format_of(path.name))


async def is_visible_to_tenant(call: ApiCall, name: str, version: str) -> bool:
    """Code that the operator loads is visible to every tenant. A submitted pipeline is visible to the tenants
    that have run it, a document also to those that have deployed it: another of that name must not replace
    it, nor be read."""
    dialect = dialect_of(version)
    if dialect not in (DIALECT, DOCUMENTS):
        return True
    if dialect == DOCUMENTS and await DeployedFlows(await call.runs(), call.tenant).has(name, version):
        return True
    where = RunFilter(tenant=call.tenant, flow=name, version=version)
    return bool(await (await call.runs()).store.list_runs(where, after=None, limit=1))


def is_version_named(wanted: str, version: str, label: str) -> bool:
    """By its fingerprint, a prefix of it, or its label."""
    return bool(wanted) and (wanted in (version, label) or is_version(wanted, version))


async def _stored(call: ApiCall, service: RunService, name: str, wanted: str | None) -> Program:
    """A flow whose code only workers have: its stored graph is used for checks."""
    rows = [row for row in await service.store.flows() if row.name == name]
    known = [(row, Graph(decode_graph(row.graph))) for row in rows]
    fits = [
        (row, graph)
        for row, graph in known
        if wanted is None or is_version_named(wanted, row.version, graph.label)
    ]
    graphs = {row.version: graph for row, graph in fits}
    for row in await newest_first(service, [row for row, _ in fits]):
        graph = graphs[row.version]
        last = await service.store.list_runs(RunFilter(flow=name, version=row.version), after=None, limit=1)
        if not last or not await is_visible_to_tenant(call, name, row.version):
            continue
        if graph.dialect == DOCUMENTS:
            return program_to_start(graph.spec)
        if _is_plain(graph):
            return stored_program(last[0], graph)
    for row in [row for row, _ in fits]:
        if await is_visible_to_tenant(call, name, row.version):
            raise CodeRequiredError(
                f"only the graph of flow {name!r} is stored here: its code is not loaded by this server, and "
                "it was never run.",
                hint="Start the server or a run of it with the file that defines it, or deploy a document.",
                flow=name,
                version=row.version,
            )
    version = f"version {wanted!r} of flow {name!r}" if wanted and rows else f"flow {name!r}"
    raise FlowNotFoundError(
        f"there is no {version} here.",
        hint="GET /v1/flows lists them. Start the server with the flow's file, or a run of it by a worker.",
        flow=name,
    )


def _is_plain(graph: Graph) -> bool:
    """Whether its state has only JSON types: values of other types need its code."""
    fields: dict[str, Any] = graph.spec.fields or {}
    return all(field["type"] == "Any" or read_type(field["type"]) is not Any for field in fields.values())


async def _from_file(call: ApiCall, uri: str) -> Program:
    document = document_of_file(call, uri)
    if document is not None:
        compiled = await DeployedFlows(await call.runs(), call.tenant).compile(document)
        return program_to_start(compiled.require_valid())
    place, colon, name = uri.partition(":") if ".py:" in uri else (uri, "", "")
    path = _allowed(call.settings.roots, place)
    if path.suffix != ".py":
        raise InputError(
            f"files of type {path.suffix or '(no extension)'} cannot be loaded.",
            hint="Name a .py, .yaml or .json file; the text of a pipeline goes to POST /v1/pipelines.",
        )
    try:
        # In a thread: loading a module may take long, and must not block the event loop.
        program = await in_thread(_loaded, f"{path}{colon}{name}")
    except HoldfastError as error:
        # The error must not reveal the paths of the operator's folders.
        raise type(error)(error.message.replace(str(path), place), hint=error.hint) from error
    call.hf.register(program, at_work=True)
    return program


def _loaded(spec: str) -> Program:
    """Each file is loaded once: changes need a restart. One at a time, so that a second request never sees a
    partly loaded module."""
    with _LOADING:
        return load_flow(spec).program()


def _allowed(roots: tuple[Path, ...], place: str) -> Path:
    """An existing file inside one of the roots, after links are resolved. Errors do not reveal what else is
    on the disk."""
    if not roots:
        raise ForbiddenError(
            "starting flows from files is disabled on this server.",
            hint="Name a flow that it has (GET /v1/flows); an operator may allow a folder.",
        )
    for root in roots:
        whole = root.resolve()
        found = (whole / place).resolve()
        if found.is_relative_to(whole) and found.is_file():
            return found
    raise FlowNotFoundError(f"there is no file {place!r} in the folders that this server may load.")
