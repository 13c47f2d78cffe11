from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    RESERVED,
    DocumentNode,
    Expression,
    FieldName,
    NodeConfig,
    NodeReport,
    NodeType,
    base_node,
)
from holdfast.model.failure_tolerance import read_tolerance
from holdfast.model.graph import MapSpec, Node, NodeKind


class MapConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`over`: what gives the list. `item`: the name by which the nodes inside read their item. `into`: the
    variable that gets a list with what the nodes inside set for each item."""

    over: Expression
    into: FieldName
    item: FieldName = "item"
    concurrency: Annotated[int, Meta(ge=1, le=1000)] = 4
    on_item_failure: Literal["fail", "collect"] = "fail"
    tolerated_failures: (
        Annotated[int, Meta(ge=0)]
        | Annotated[str, Meta(pattern=r"^(100|[0-9]{1,2}(\.[0-9]{1,6})?)%$")]
        | None
    ) = None
    """How many items may fail: a count, or a share such as `10%`."""
    min_successes: Annotated[int, Meta(ge=0)] | None = None


class MapType(NodeType):
    name = "map"
    summary = "Runs the nodes inside of it (`parent`) once for each item of a list."
    config = MapConfig
    kind = NodeKind.map
    is_parent = True
    rules = ("map-empty", "crosses-parent", "variable-name")
    example: ClassVar[Json] = {"over": "orders", "into": "results"}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.config.into,)

    def scope_names(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.config.item,)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: MapConfig = node.config
        if not node.inside:
            found.error((), "map-empty", "no node is inside of it", f"give a node parent: {node.id}")
        for field in ("into", "item"):
            if getattr(config, field) in RESERVED:
                message = f"{getattr(config, field)!r} is reserved"
                found.error((field,), "variable-name", message, "choose another name")

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        config: MapConfig = node.config
        tolerance = read_tolerance(config.tolerated_failures, config.min_successes)
        spec = MapSpec(
            over=config.over,
            body=node.id,
            into=config.into,
            concurrency=config.concurrency,
            on_item_failure=config.on_item_failure,
            tolerance=tolerance if tolerance.given else UNSET,
            item=config.item,
            shares=node.shares,
            gives=node.gives,
        )
        return base_node(node, found, map=spec)


NODE_TYPES = (MapType(),)
