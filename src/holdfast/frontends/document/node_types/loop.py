"""A loop lowers to a header, the nodes inside, and a node behind them (`{id}__next`) that leads back to the
header or on. The nodes inside run at least once."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    ERROR,
    OUT,
    DocumentNode,
    Expression,
    NodeConfig,
    NodeReport,
    NodeType,
    base_node,
    plain_edge,
)
from holdfast.frontends.document.pass_through import NOTHING
from holdfast.model.graph import Edge, EdgeKind, Node, RetryPolicy
from holdfast.model.program import NodeHandler

DONE = "done"
BODY = "__body"
NEXT = "__next"


class LoopConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`while`: whether there is another turn, asked after each. `on_limit`: what follows if it still holds
    after `max_turns`."""

    repeat: Expression = msgspec.field(name="while")
    max_turns: Annotated[int, Meta(ge=1, le=10_000)]
    on_limit: Literal["fail", "continue"] = "fail"


class LoopType(NodeType):
    name = "loop"
    summary = "Repeats the nodes inside of it (`parent`) while a condition holds; they run at least once."
    config = LoopConfig
    is_parent = True
    rules = ("loop-empty", "crosses-parent", "id-clash")
    example: ClassVar[Json] = {"while": "tries < 3", "max_turns": 9}

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        return (OUT, DONE)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        if not node.inside:
            found.error((), "loop-empty", "no node is inside of it", f"give a node parent: {node.id}")

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        return NOTHING


class LoopEndType(NodeType):
    """Made by the compiler, never written."""

    name = NEXT
    summary = ""
    config = LoopConfig

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        return base_node(node, found, timeout=None, retry=RetryPolicy(), breakpoint=False)

    def graph_edges(self, node: DocumentNode, found: NodeReport) -> list[Edge]:
        config: LoopConfig = node.config
        header = node.id.removesuffix(NEXT)
        edges: list[Edge] = []
        if config.max_turns > 1 or config.on_limit == "fail":
            # With one turn it is never taken: where it would be, the run is over its limit.
            edges.append(
                Edge(
                    id=f"{node.id}->{header}",
                    source=node.id,
                    target=header,
                    kind=EdgeKind.when,
                    when=config.repeat,
                    loop=config.max_turns - 1,
                    on_limit=config.on_limit,
                )
            )
        kind = EdgeKind.otherwise if edges else EdgeKind.always
        return edges + [plain_edge(node, edge, kind=kind) for edge in node.leaving if edge.port != ERROR]

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        return NOTHING


LOOP_END = LoopEndType()
NODE_TYPES = (LoopType(),)
