from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    ERROR,
    OUT,
    DocumentNode,
    Duration,
    NodeConfig,
    NodeReport,
    NodeType,
    base_node,
    plain_edge,
)
from holdfast.frontends.document.pass_through import NOTHING
from holdfast.model.graph import Edge, EdgeKind, JoinKind, JoinPolicy, Node
from holdfast.model.program import NodeHandler, Router

TIMEOUT = "timeout"


class ParallelType(NodeType):
    name = "parallel"
    summary = "Continues along all of its edges at the same time."
    rules = ("parallel-branches",)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        if len(node.from_port(OUT)) < 2 and not node.cut:
            found.warn((), "parallel-branches", "fewer than two edges leave it", "add a branch, or remove it")

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        return NOTHING


class JoinConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`wait`: for `all` live branches, for `any` of them, or for a number of them. `timeout`: from the first
    branch on; then it continues at `timeout`, or by `out` if that port has no edge. `cancel_losers`: branches
    that it no longer waits for are stopped."""

    wait: Literal["all", "any"] | Annotated[int, Meta(ge=1, le=10_000)] = "all"
    timeout: Duration | None = None
    cancel_losers: bool = False


class JoinType(NodeType):
    name = "join"
    summary = "Waits for branches that run at the same time."
    config = JoinConfig
    rules = ("join-timeout", "edge-mixed", "quorum")
    example: ClassVar[Json] = {"wait": "all", "timeout": "1h"}

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        return (OUT, TIMEOUT)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        late = node.from_port(TIMEOUT)
        if late and node.config.timeout is None:
            message = "an edge leaves its port 'timeout', but it has none"
            found.error((), "join-timeout", message, "add timeout", rests_on=("timeout",))
        if late and not all(edge.edge.is_free for edge in node.leaving):
            message = "its edges leave by the port 'timeout' and by conditions"
            found.error((), "edge-mixed", message, "put the conditions on a node behind it")

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        config: JoinConfig = node.config
        count = config.wait if isinstance(config.wait, int) else 1
        join = JoinPolicy(
            kind=JoinKind.quorum if isinstance(config.wait, int) else JoinKind(config.wait),
            count=count,
            timeout=found.duration("timeout", config.timeout),
            cancel_losers=config.cancel_losers,
        )
        return base_node(node, found, timeout=None, join=join)

    def graph_edges(self, node: DocumentNode, found: NodeReport) -> list[Edge]:
        if not node.from_port(TIMEOUT):
            return super().graph_edges(node, found)
        return [
            plain_edge(node, edge, **({} if edge.port == ERROR else {"kind": EdgeKind.chosen}))
            for edge in node.leaving
        ]

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        return NOTHING

    def routers(self, node: DocumentNode, site: DocumentSite) -> list[Router]:
        if not node.from_port(TIMEOUT):
            return []

        async def choose(ctx: Any) -> str:
            return TIMEOUT if ctx.join_timed_out else OUT

        choices: dict[Any, tuple[str, ...]] = {
            port: tuple(edge.id for edge in node.from_port(port)) for port in (OUT, TIMEOUT)
        }
        return [Router(fn=choose, is_async=True, takes=("ctx",), choices=choices)]


NODE_TYPES = (ParallelType(), JoinType())
