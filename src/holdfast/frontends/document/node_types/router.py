from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

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
    check_mixed_ports,
    plain_edge,
)
from holdfast.frontends.document.pass_through import NOTHING
from holdfast.frontends.document.render import resolver_for
from holdfast.model.expressions import compile_expr, truthy
from holdfast.model.graph import Edge, EdgeKind
from holdfast.model.program import NodeHandler, Router

ELSE = "else"


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    when: Expression


class RouterConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`mode`: the first case that holds, or all of them; `else` where none does."""

    cases: Annotated[tuple[Case, ...], Meta(min_length=1)]
    mode: Literal["first", "all"] = "first"


class RouterType(NodeType):
    name = "router"
    summary = "Continues at the port of the first case that is true, or of each; the choice is recorded."
    config = RouterConfig
    rules = ("case-duplicate", "port-open", "edge-mixed")
    port_fields = ("cases",)
    example: ClassVar[Json] = {"cases": [{"id": "big", "when": "amount > 9"}]}

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        config: RouterConfig = node.config
        return (OUT, *dict.fromkeys(case.id for case in config.cases), ELSE)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: RouterConfig = node.config
        counts = Counter(case.id for case in config.cases)
        for index, case in enumerate(config.cases):
            if counts[case.id] > 1 or case.id in (ELSE, ERROR, OUT):
                why = "is reserved" if case.id in (ELSE, ERROR, OUT) else "is used twice"
                found.error(
                    ("cases", index, "id"), "case-duplicate", f"the case id {case.id!r} {why}",
                    "give each case an id of its own",
                )  # fmt: skip
        for port in self.ports(node)[1:]:
            if not node.is_connected(port) and node.node.parent is None:
                message = f"no edge leaves its port {port!r}: the branch ends there"
                fix = f"connect the port {port!r}, if only to an end"
                found.warn((), "port-open", message, fix, rests_on=self.port_fields)
        check_mixed_ports(node, found, self.ports(node)[1:])

    def conditions(self, node: DocumentNode) -> tuple[tuple[str, str], ...]:
        config: RouterConfig = node.config
        return tuple((f"its case {case.id!r}", case.when) for case in config.cases)

    def graph_edges(self, node: DocumentNode, found: NodeReport) -> list[Edge]:
        return [
            plain_edge(node, edge, **({} if edge.port in (OUT, ERROR) else {"kind": EdgeKind.chosen}))
            for edge in node.leaving
        ]

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        return NOTHING

    def routers(self, node: DocumentNode, site: DocumentSite) -> list[Router]:
        config: RouterConfig = node.config
        cases = [(case.id, compile_expr(case.when)) for case in config.cases]

        async def choose(state: Mapping[str, Any], ctx: Any) -> list[str]:
            resolve = resolver_for(state, ctx)
            found: list[str] = []
            for name, when in cases:
                if truthy(when.evaluate(resolve)):
                    found.append(name)
                    if config.mode == "first":
                        break
            return found or [ELSE]

        choices: dict[Any, tuple[str, ...]] = {
            port: tuple(edge.id for edge in node.from_port(port)) for port in self.ports(node)[1:]
        }
        return [Router(fn=choose, is_async=True, takes=("state", "ctx"), choices=choices)]


NODE_TYPES = (RouterType(),)
