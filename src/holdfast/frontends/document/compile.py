"""Compiles a document to the graph of its flow version, and says everything that is wrong with it.

The graph carries the meaning of the document, so that any worker can run it and any reader show it. The same
meaning gives the same graph, and so the same version, in every process and format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.errors import StateError
from holdfast.frontends.document.available_names import NOWHERE, DocumentSite
from holdfast.frontends.document.canonical import meaning_of
from holdfast.frontends.document.document import FlowDocument, Json
from holdfast.frontends.document.edge_sets import check_edge_sets
from holdfast.frontends.document.field_types import field_types
from holdfast.frontends.document.names import (
    ReadText,
    check_names,
    check_unreached_names,
    input_names,
    read_texts,
)
from holdfast.frontends.document.node_type import (
    ERROR,
    RESERVED,
    DocumentNode,
    DoubleReport,
    FlowFacts,
    NodeReport,
)
from holdfast.frontends.document.node_types.loop import LOOP_END, NEXT
from holdfast.frontends.document.node_types.subflow import GraphRoom
from holdfast.frontends.document.problem import DocumentProblem, Path, ProblemReport, require_valid_document
from holdfast.frontends.document.read import ReadDocument, read_data
from holdfast.frontends.document.regions import check_parents, first_nodes, members_by_graph, with_regions
from holdfast.frontends.document.secret_rules import check_connections, check_default, check_secrets
from holdfast.frontends.document.state import DocumentState
from holdfast.frontends.document.text_truth import check_text_truth
from holdfast.frontends.document.topology import check_ways, document_nodes
from holdfast.frontends.document.unread_decisions import check_unread_decisions
from holdfast.frontends.document.validation import check_single_conditions, report_graph_problems
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.graph import Edge, GraphSpec, Node
from holdfast.model.validate import StateFacts, validate
from holdfast.types.reducers import FIELD_REDUCERS

DIALECT: Final = "canvas"


class CompiledDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` is None where the document has errors. `nodes`: those that become part of the graph. `ports`:
    where edges may leave each node of the document."""

    name: str
    document: FlowDocument | None
    spec: GraphSpec | None
    nodes: tuple[DocumentNode, ...]
    problems: list[DocumentProblem]
    ports: dict[str, tuple[str, ...]] = {}

    def require_valid(self) -> GraphSpec:
        """Raises FlowInvalidError that lists every error."""
        require_valid_document(self.name, self.problems)
        assert self.spec is not None
        return self.spec


def compile_document(given: ReadDocument, site: DocumentSite = NOWHERE) -> CompiledDocument:
    document, report = given.document, given.report
    if document is None:
        return CompiledDocument(name="?", document=None, spec=None, nodes=(), problems=given.problems())
    compiler = _Compiler(document, report, site)
    nodes, spec = compiler.compile()
    return CompiledDocument(
        name=document.name,
        document=document,
        spec=None if report.has_errors else spec,
        nodes=nodes,
        problems=given.problems(),
        ports=_ports((*nodes, *compiler.unreached)),
    )


def _ports(nodes: Iterable[DocumentNode]) -> dict[str, tuple[str, ...]]:
    """Of each node that the document itself has."""
    written = (node for node in nodes if node.type is not LOOP_END)
    return {node.id: (*node.type.ports(node), ERROR) for node in written}


def nodes_of_stored(source: Json, site: DocumentSite) -> tuple[DocumentNode, ...]:
    """The nodes of a graph that was compiled before. Problems that a newer Holdfast would report are not
    asked for: the graph was valid when it was stored."""
    found = read_data(source)
    assert found.document is not None
    return _Compiler(found.document, found.report, site).nodes()


class _Compiler:
    def __init__(self, document: FlowDocument, report: ProblemReport, site: DocumentSite) -> None:
        self.document, self.report, self.site = document, report, site
        self.texts: list[ReadText] = []
        self.unreached: tuple[DocumentNode, ...] = ()
        self.room = GraphRoom(len(document.nodes))
        self.doubles: list[DocumentNode] = []

    def nodes(self) -> tuple[DocumentNode, ...]:
        """Those that a run can reach: an edge from any other would never be decided."""
        found, doubles = document_nodes(self.document, FlowFacts(name=self.document.name), self.report)
        found = check_parents(found, self.report)
        self.texts = read_texts(found, self.report)
        reached = check_ways(found, self.report)
        flow = self._facts(found)
        self.doubles = [msgspec.structs.replace(node, flow=flow) for node in doubles]
        found = with_regions(found, self.texts, self.report)
        reached |= {
            name for name, node in found.items() if node.type is LOOP_END and name[: -len(NEXT)] in reached
        }
        whole = {name: msgspec.structs.replace(node, flow=flow) for name, node in found.items()}
        self.unreached = tuple(node for name, node in whole.items() if name not in reached)
        return tuple(node for name, node in whole.items() if name in reached)

    def compile(self) -> tuple[tuple[DocumentNode, ...], GraphSpec]:
        self._check_variables()
        self._check_schemas()
        nodes = self.nodes()
        for node in self.unreached:
            self._lower(node)
        by_id = {node.id: node for node in nodes}
        texts = [text for text in self.texts if text.node in by_id]
        check_names(self.document, by_id, texts, self.report)
        whole = by_id | {node.id: node for node in self.unreached}
        others = [text for text in self.texts if text.node not in by_id and text.node in whole]
        check_unreached_names(self.document, whole.values(), others, self.report)
        self._check_doubles(whole.values())
        spec = self._whole_graph(by_id)
        facts = StateFacts(
            types=field_types(self.document, nodes),
            writes={node.id: frozenset(node.writes) for node in nodes},
            complete=frozenset(by_id),
            given=frozenset(input_names(self.document)),
            conditions={node.id: found for node in nodes if (found := node.type.conditions(node))},
        )
        self._validate(spec, facts, by_id)
        check_edge_sets(whole.values(), self.document.broken, self.report)
        check_single_conditions(nodes, self.report)
        check_unread_decisions(by_id, texts, spec, self.report)
        check_text_truth(self.document, by_id, texts, self.report)
        return nodes, spec

    def _check_doubles(self, others: Iterable[DocumentNode]) -> None:
        """Of nodes whose id another one has: what is wrong with each for itself."""
        for node in self.doubles:
            self._lower(node, DoubleReport(self.report, node))
            texts = read_texts({node.id: node}, self.report)
            check_unreached_names(self.document, [*others, *self.doubles], texts, self.report)

    def _validate(self, spec: GraphSpec, facts: StateFacts, nodes: Mapping[str, DocumentNode]) -> None:
        """With the bodies of maps; a sub-flow is another document, and was valid."""
        report_graph_problems(validate(spec, facts=facts, deep=False), nodes, self.report)
        for inner in spec.subgraphs:
            if not inner.document:
                self._validate(inner, facts, nodes)

    def _facts(self, nodes: Mapping[str, DocumentNode]) -> FlowFacts:
        fields = self.document.fields
        return FlowFacts(
            name=fields.name,
            scope=fields.config.scaiqueue.scope,
            input=fields.input,
            output=fields.output,
            secrets=frozenset(name for name, each in fields.variables.items() if each.secret),
            reads=frozenset(name for text in self.texts for name in text.names),
            variables=fields.variables,
            types={name: node.node.type for name, node in nodes.items()},
            binds={name: node.bind for name, node in nodes.items()},
            errors=self._errors(nodes),
        )

    def _errors(self, nodes: Mapping[str, DocumentNode]) -> dict[str, str]:
        """By node, the variable that gets its error: `NAME_error` of a node whose port `error` leads on,
        where a text reads it and the document does not set it itself."""
        read = {name for text in self.texts for name in text.names if name.endswith(f"_{ERROR}")}
        if not read:
            return {}
        own = {*input_names(self.document), *self.document.variables}
        own.update(name for node in nodes.values() for name in node.type.writes(node))
        named = {name: f"{node.bind}_{ERROR}" for name, node in nodes.items() if node.from_port(ERROR)}
        return {name: error for name, error in named.items() if error in read - own}

    def _check_variables(self) -> None:
        config = self.document.data.get("config")
        if isinstance(config, dict):
            check_connections(cast("Json", config).get("connections"), self.report)
        for name in sorted(input_names(self.document).keys() & RESERVED):
            message = f"{name!r} is read as input.{name} only: {{{{{name}}}}} is something else"
            path = ("input", "properties", name)
            self.report.warn(path, "input-name", message, "give it another name", on_key=True)
        for name, declared in self.document.variables.items():
            check_default(name, declared, self.report)
            if name in RESERVED or not (name.isidentifier() and name.isascii()):
                why = "is reserved" if name in RESERVED else "cannot be the name of a variable"
                self.report.error(
                    ("variables", name), "variable-name", f"{name!r} {why}", "choose another", on_key=True
                )
            if declared.reducer and declared.reducer not in FIELD_REDUCERS:
                message = f"{name!r} has the unknown reducer {declared.reducer!r}"
                fix = f"use one of {', '.join(sorted(FIELD_REDUCERS))}"
                self.report.error(("variables", name, "reducer"), "reducer", message, fix)

    def _check_schemas(self) -> None:
        fields = self.document.fields
        schemas: dict[Path, Any] = {("input",): fields.input, ("output",): fields.output}
        schemas |= {("variables", name, "schema"): each.schema for name, each in fields.variables.items()}
        for path, schema in schemas.items():
            for fault in schema_faults(schema) if schema is not None else ():
                place, _, problem = fault.partition(": ")
                inside = place.split(".")[1:]
                fix = "write a JSON Schema (2020-12)"
                self.report.error((*path, *inside), "json-schema", problem or fault, fix)
        state = DocumentState(fields.variables, None, self.site.validate)
        for name, each in fields.variables.items():
            if each.default is not msgspec.UNSET and each.default is not None and not each.reducer:
                try:
                    state.fit(name, each.default)
                except StateError as error:
                    path = ("variables", name, "default")
                    self.report.error(path, "variable-default", error.message, "give another default")

    def _lower(self, node: DocumentNode, found: NodeReport | None = None) -> tuple[Node, list[Edge]]:
        found = found or NodeReport(self.report, node)
        node.type.check(node, found, self.site)
        check_secrets(node, found, self.site)
        return node.type.graph_node(node, found, self.site), node.type.graph_edges(node, found)

    def _whole_graph(self, nodes: Mapping[str, DocumentNode]) -> GraphSpec:
        variables = self.document.variables
        inner = self._graph(members_by_graph(nodes), None, self.document.name)
        return msgspec.structs.replace(
            inner,
            defaults={
                name: each.default for name, each in variables.items() if each.default is not msgspec.UNSET
            },
            reducers={name: each.reducer for name, each in variables.items() if each.reducer},
            secrets=tuple(sorted(name for name, each in variables.items() if each.secret)) or msgspec.UNSET,
            document={"dialect": DIALECT, "source": meaning_of(self.document)},
        )

    def _graph(
        self, whole: Mapping[str | None, list[DocumentNode]], parent: str | None, name: str
    ) -> GraphSpec:
        """Of the whole document, or of the body of a map."""
        made, edges = list[Node](), list[Edge]()
        inner: dict[str, GraphSpec] = {}
        members = whole.get(parent, [])
        for node in members:
            one, leaving = self._lower(node)
            made.append(one)
            edges += leaving
            child = node.type.subgraph(node, self.site)
            if child is not None:
                if child.name not in inner and self.room.has(child, NodeReport(self.report, node)):
                    inner[child.name] = child
            elif node.inside and one.map is not None:
                inner[node.id] = self._graph(whole, node.id, node.id)
        return GraphSpec(
            name=name,
            nodes=tuple(made),
            edges=tuple(edges),
            start=_starts(members) if parent is None else first_nodes(members),
            subgraphs=tuple(inner.values()),
        )


def _starts(nodes: Iterable[DocumentNode]) -> tuple[str, ...]:
    return tuple(node.id for node in nodes if node.node.type == "start")[:1]
