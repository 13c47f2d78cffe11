"""The program of a document: built from its stored graph alone, with the functions that this process has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from holdfast.app.extensions import DOCUMENTS
from holdfast.documents.callback_node import callback_handler
from holdfast.documents.connections import Connections
from holdfast.documents.functions import allowed_tools, registered_functions
from holdfast.documents.http_node import http_handler, refuses_url
from holdfast.documents.queue_nodes import escalation_handler, publish_handler
from holdfast.errors import SettingsError, VersionMismatchError
from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.canonical import source_of
from holdfast.frontends.document.compile import DIALECT, CompiledDocument, nodes_of_stored
from holdfast.frontends.document.document import FlowNode, Variable
from holdfast.frontends.document.node_type import DocumentNode, FlowFacts, NodeType
from holdfast.frontends.document.registry import node_types
from holdfast.frontends.document.state import DocumentState
from holdfast.holds.forms.json_schema import problems_in
from holdfast.model.fingerprint import graph_fingerprint
from holdfast.model.graph import Graph, GraphSpec, NodeKind
from holdfast.model.program import NodeHandler, Program, Router
from holdfast.types.ids import DEFAULT_TENANT


def default_site(connections: Connections | None = None, tenant: str = DEFAULT_TENANT) -> DocumentSite:
    """What this process offers to documents. `tenant`: whose connections a check knows. Raises
    SettingsError."""

    known = connections or Connections()
    tools = allowed_tools(known.settings.tools)
    return DocumentSite(
        functions=registered_functions(),
        connections=known.kinds(tenant),
        secrets=known.secret_names(tenant),
        refuses_url=refuses_url(known),
        tools=tools,
        listed_tools=frozenset(known.settings.tools),
        handlers=handlers_for(known, tools),
        validate=schema_problems,
    )


def handlers_for(
    connections: Connections, tools: Mapping[str, Any] | None = None
) -> dict[str, Callable[[DocumentNode], NodeHandler]]:
    """By node type, the code of types that reach out of the process."""
    return {
        "http": partial(http_handler, connections=connections),
        "callback": partial(callback_handler, connections=connections),
        "llm": lambda node: _models().llm_handler(node, connections),
        "agent": lambda node: _models().agent_handler(node, connections, tools or {}),
        "tool": lambda node: _models().tool_handler(node, tools or {}),
        "queue_publish": publish_handler,
        "queue_escalation": escalation_handler,
    }


def _models() -> Any:
    """Loaded with the first node that needs it: most documents ask no model."""
    from holdfast.documents import model_nodes

    return model_nodes


def program_of(spec: GraphSpec, site: DocumentSite | None = None) -> Program:
    """The program of a stored graph. Raises VersionMismatchError if it is not of a document, or this process
    lacks what it names."""
    document: Any = spec.document if isinstance(spec.document, dict) else {}
    if document.get("dialect") != DIALECT:
        raise VersionMismatchError(
            f"flow {spec.name!r} was not made from a document.", hint="Load the code of its version."
        )
    site = site or default_site()
    return _program(spec, nodes_of_stored(source_of(document), site), source_of(document), site)


class DocumentDialect:
    """How stored documents become programs in this process. `site`: what it has; by default what was
    registered."""

    def __init__(self, site: DocumentSite | None = None) -> None:
        self._site = site

    def __call__(self, spec: GraphSpec) -> Program:
        return program_of(spec, self._site)

    def needs(self, spec: GraphSpec) -> frozenset[str]:
        return needs_of(spec)

    def offers(self) -> frozenset[str]:
        try:
            site = self._site or default_site()
        except SettingsError:
            return frozenset()  # the file of connections is broken: nothing can be built here
        functions = [*(site.functions or {})]
        found = [("function", functions), ("check", [*functions, *(site.checks or {})])]
        return frozenset(
            f"{kind}:{name}" for kind, names in (*found, ("tool", [*(site.tools or {})])) for name in names
        )


DOCUMENTS.register(DocumentDialect())


def needs_of(spec: GraphSpec) -> frozenset[str]:
    """The functions, checks and tools that a worker needs for a stored graph, its sub-flows included."""
    needs: set[str] = set()
    inside = list(spec.subgraphs)
    ids = {node.id for node in spec.nodes}
    while inside:
        inner = inside.pop()
        if inner.document:
            needs |= needs_of(inner)
        else:
            ids |= {node.id for node in inner.nodes}
            inside += inner.subgraphs
    for data in source_of(spec.document)["nodes"] if spec.document else ():
        kind = node_types().get(data["type"])
        if kind is not None and data["id"] in ids and type(kind).requires is not NodeType.requires:
            given = {key: value for key, value in data.get("config", {}).items() if value is not None}
            node = DocumentNode(
                node=FlowNode(id=data["id"], type=kind.name),
                type=kind,
                config=msgspec.convert(given, kind.config),
                given=given,
                path=(),
                flow=FlowFacts(name=spec.name),
            )
            needs.update(kind.requires(node))
    return frozenset(needs)


def program_for(compiled: CompiledDocument, site: DocumentSite | None = None) -> Program:
    """The program of a document that was just compiled. Raises FlowInvalidError for one with errors."""
    spec = compiled.require_valid()
    assert compiled.document is not None
    return _program(spec, compiled.nodes, compiled.document.data, site or default_site())


def program_to_start(spec: GraphSpec) -> Program:
    """For a process that only starts runs: it need not have the functions that the document names, which a
    worker must have."""
    try:
        return program_of(spec)
    except VersionMismatchError:
        source = source_of(spec.document)
        return _made(spec, {}, {}, source, default_site(), children={})


def _child(spec: GraphSpec, nodes: Sequence[DocumentNode], site: DocumentSite) -> Program:
    """The body of a map is part of the document; a sub-flow is a document of its own."""
    return program_of(spec, site) if spec.document else _program(spec, nodes, {}, site)


def _program(spec: GraphSpec, nodes: Sequence[DocumentNode], source: Any, site: DocumentSite) -> Program:
    handlers: dict[str, NodeHandler] = {}
    routers: dict[str, list[Router]] = {}
    kinds = {node.id: node.kind for node in spec.nodes}
    for node in nodes:
        if node.id not in kinds:
            continue
        handler = node.type.handler(node, site) if kinds[node.id] in _WITH_CODE else None
        if handler is not None:
            handlers[node.id] = handler
        found = node.type.routers(node, site)
        if found:
            routers[node.id] = found
    children = {inner.name: _child(inner, nodes, site) for inner in spec.subgraphs}
    return _made(spec, handlers, routers, source, site, children)


def _made(
    spec: GraphSpec,
    handlers: dict[str, NodeHandler],
    routers: dict[str, list[Router]],
    source: Any,
    site: DocumentSite,
    children: dict[str, Program],
) -> Program:
    variables = msgspec.convert(source.get("variables") or {}, dict[str, Variable])
    program = Program(
        Graph(spec),
        version=graph_fingerprint(spec),
        code={name: handler.code for name, handler in handlers.items()},
        handlers=handlers,
        routers=routers,
        schema=DocumentState(variables, source.get("input"), site.validate),
        children=children,
    )
    program.description = str(source.get("description") or "")
    return program


_WITH_CODE = frozenset({NodeKind.task, NodeKind.guardrail})


def schema_problems(schema: Any, value: Any) -> list[str]:
    """Every problem with its place; none: the value fits."""
    return [text.removeprefix("data.").removeprefix("data: ") for text in problems_in(_plain(value), schema)]


def _plain(value: Any) -> Any:
    """Values of a run are frozen; the validator knows the plain types."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value
