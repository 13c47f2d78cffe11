from __future__ import annotations

from typing import ClassVar

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    ERROR,
    OUT,
    DocumentEdge,
    DocumentNode,
    Expression,
    NodeConfig,
    NodeReport,
    NodeType,
    check_mixed_ports,
    plain_edge,
)
from holdfast.frontends.document.pass_through import NOTHING
from holdfast.model.graph import Edge, EdgeKind
from holdfast.model.program import NodeHandler


class ConditionConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    when: Expression


class ConditionType(NodeType):
    name = "condition"
    summary = "Continues at the port `true` or `false`."
    config = ConditionConfig
    rules = ("port-open", "edge-mixed")
    example: ClassVar[Json] = {"when": "risk > 0.5"}

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        return (OUT, "true", "false")

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        for port in ("true", "false"):
            if not node.is_connected(port) and node.node.parent is None:
                message = f"no edge leaves its port {port!r}: the branch ends there"
                found.warn((), "port-open", message, f"connect the port {port!r}, if only to an end")
        check_mixed_ports(node, found, ("true", "false"))

    def graph_edges(self, node: DocumentNode, found: NodeReport) -> list[Edge]:
        return [self._edge(node, edge) for edge in node.leaving]

    def _edge(self, node: DocumentNode, edge: DocumentEdge) -> Edge:
        if edge.port in (OUT, ERROR):
            return plain_edge(node, edge)
        config: ConditionConfig = node.config
        if edge.port == "true":
            return plain_edge(node, edge, kind=EdgeKind.when, when=config.when)
        if node.from_port("true"):
            return plain_edge(node, edge, kind=EdgeKind.otherwise)
        return plain_edge(node, edge, kind=EdgeKind.when, when=f"!({config.when})")

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        return NOTHING


NODE_TYPES = (ConditionType(),)
