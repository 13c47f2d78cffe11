from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.errors import VersionMismatchError
from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    NOT_EMPTY,
    OUT,
    DocumentEdge,
    DocumentNode,
    NodeConfig,
    NodeReport,
    NodeType,
    base_node,
    plain_edge,
)
from holdfast.frontends.python.code import code_fingerprint
from holdfast.frontends.python.function_parameters import is_coroutine, takes_of
from holdfast.model.checks.names import near_name
from holdfast.model.graph import Edge, EdgeKind, GuardSpec, Node, NodeKind
from holdfast.model.program import NodeHandler

VIOLATION = "violation"


class GuardrailConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`check`: a registered function that looks at the variables. `on_violation`: fail the run, warn, use the
    values that the check gives instead, or leave by the port `violation` (reroute)."""

    check: Annotated[str, Meta(pattern=NOT_EMPTY, description="The name of a registered check.")]
    on_violation: Literal["block", "warn", "sanitize", "reroute"] | None = None


class GuardrailType(NodeType):
    name = "guardrail"
    summary = "Checks the variables before the run continues."
    config = GuardrailConfig
    kind = NodeKind.guardrail
    rules = ("check-unknown", "violation-edges")
    example: ClassVar[Json] = {"check": "pii"}

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        return (OUT, VIOLATION)

    def requires(self, node: DocumentNode) -> tuple[str, ...]:
        return (f"check:{node.config.check}",)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: GuardrailConfig = node.config
        known = _checks(site)
        if known is not None and config.check not in known:
            fix = near_name(config.check, known) or "register it, or name its module with --functions"
            found.error(("check",), "check-unknown", f"there is no check {config.check!r}", fix)
        edges = node.from_port(VIOLATION)
        if len(edges) > 1:
            message = "more than one edge leaves its port 'violation'"
            found.error((), "violation-edges", message, "lead to one node, which may lead on to several")
        if edges and config.on_violation not in (None, "reroute"):
            message = f"on_violation is {config.on_violation!r}, but its port 'violation' has an edge"
            found.error(("on_violation",), "violation-edges", message, "remove one of them")
        if not edges and config.on_violation == "reroute":
            message = "on_violation is 'reroute', but no edge leaves its port 'violation'"
            found.error(("on_violation",), "violation-edges", message, "connect the port 'violation'")

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        edges = node.from_port(VIOLATION)
        guard = GuardSpec(
            on_violation="reroute" if edges else node.config.on_violation or "block",
            reroute=edges[0].target if edges else None,
        )
        return base_node(node, found, guard=guard)

    def graph_edges(self, node: DocumentNode, found: NodeReport) -> list[Edge]:
        return [self._edge(node, edge) for edge in node.leaving]

    def _edge(self, node: DocumentNode, edge: DocumentEdge) -> Edge:
        return plain_edge(node, edge, **({"kind": EdgeKind.chosen} if edge.port == VIOLATION else {}))

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        fn = (_checks(site) or {}).get(node.config.check)
        if fn is None:
            raise VersionMismatchError(
                f"node {node.id!r} asks the check {node.config.check!r}, which is not registered here.",
                hint="Start a worker that has it: holdfast worker --functions path/to/file.py.",
            )
        return NodeHandler(fn=fn, is_async=is_coroutine(fn), takes=takes_of(fn), code=code_fingerprint(fn))


def _checks(site: DocumentSite) -> Mapping[str, Callable[..., Any]] | None:
    """Any registered function can be a check."""
    if site.checks is None and site.functions is None:
        return None
    return {**(site.functions or {}), **(site.checks or {})}


NODE_TYPES = (GuardrailType(),)
