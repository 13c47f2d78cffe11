"""Turns guards into guardrail nodes before a node, after it or on an edge. The engine does not know guards.

Edges to a guarded node lead to the guardrail before it, and its outgoing edges leave from the guardrail after
it. Edges for a failure or a timeout leave from the node itself: there is no result to check.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.frontends.python.declarations import Collector
from holdfast.frontends.python.guard import GuardPlan
from holdfast.model.diagnostics import GraphProblem
from holdfast.model.expressions import ExprSyntaxError, compile_expr
from holdfast.model.graph import Edge, GuardSpec, JoinPolicy, Node, NodeKind
from holdfast.model.program import NodeHandler, Router

_OF_THE_NODE: Final = frozenset({"outcome", "output"})
"""Names that a condition reads from the source of its edge, and from no other node."""


class Parts(msgspec.Struct, kw_only=True):
    """What a flow is made of, its guards included."""

    nodes: list[Node]
    edges: list[Edge]
    handlers: dict[str, NodeHandler]
    routers: dict[str, list[Router]]
    first: list[str] | None
    problems: list[GraphProblem] = []


def parts_of(flow: Collector) -> Parts:
    plain = Parts(
        nodes=flow.nodes, edges=flow.edges, handlers=flow.handlers, routers=flow.routers, first=flow.first
    )
    if not (flow.guards or flow.edge_guards):
        return plain
    if flow.settings["traversal"] == "walk":
        plain.problems = [_no_walk()]
        return plain
    return _Guarding(flow).parts()


def _no_walk() -> GraphProblem:
    return GraphProblem(
        rule="guard-walk",
        message="a walk cannot have guards: they would hide the outcome, label and suggested nodes of a node",
        fix="declare the check as a node with @flow.guardrail",
    )


class _Guarding:
    def __init__(self, flow: Collector) -> None:
        self.flow = flow
        self.taken = {node.id for node in flow.nodes}
        self.problems: list[GraphProblem] = []
        self.handlers = dict(flow.handlers)
        self.before = {
            name: self._row(f"{name}__guard_input", g, g.before) for name, g in flow.guards.items()
        }
        self.after = {name: self._row(f"{name}__guard_output", g, g.after) for name, g in flow.guards.items()}
        # For an edge without a source only the missing source is reported, not its guard.
        sound = {edge.id for edge in flow.edges if edge.source in self.taken}
        plans = {name: plan for name, plan in flow.edge_guards.items() if name in sound}
        self.between = {name: self._row(f"{name}__guard", g, g.between) for name, g in plans.items()}
        self.leaving = self._by_source()
        self.entry = {name: row[0].id for name, row in self.before.items() if row}
        self.exit = {name: row[-1].id for name, row in self.after.items() if row}

    def _row(self, name: str, plan: GuardPlan, handlers: Sequence[NodeHandler]) -> list[Node]:
        ids = [name if i == 1 else f"{name}_{i}" for i in range(1, len(handlers) + 1)]
        clash = self.taken.intersection(ids)
        if clash:
            self.problems += [_clash(one) for one in sorted(clash)]
            return []
        self.taken.update(ids)
        self.handlers.update(zip(ids, handlers, strict=True))
        spec = GuardSpec(on_violation=plan.on_violation, reroute=plan.reroute)
        return [Node(id=one, kind=NodeKind.guardrail, effect=plan.effect, guard=spec) for one in ids]

    def _by_source(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for edge in self.flow.edges:
            found.setdefault(edge.source, []).extend(self.between.get(edge.id, ()))
        return found

    def parts(self) -> Parts:
        first = self.flow.first
        # Before the nodes: `_node` removes the rows that the edges need.
        edges = [part for edge in self.flow.edges for part in self._edge(edge)] + self._links()
        nodes = [part for node in self.flow.nodes for part in self._node(node)]
        return Parts(
            nodes=[self._landing(node) for node in nodes],
            edges=edges,
            handlers=self.handlers,
            routers={self.exit.get(name, name): routers for name, routers in self.flow.routers.items()},
            first=None if first is None else [self._into(name) for name in first],
            problems=self.problems,
        )

    def _into(self, name: str) -> str:
        return self.entry.get(name, name)

    def _node(self, node: Node) -> Iterable[Node]:
        """The node with its guardrails around it. Of two nodes with one id, an error, the first gets them."""
        before, after = self.before.pop(node.id, []), self.after.pop(node.id, [])
        if before:
            # Edges now lead to the first guardrail, so branches join there.
            before = [replace(before[0], join=node.join), *before[1:]]
            node = replace(node, join=JoinPolicy())
        # Branches merge in the order of nodes: the guardrails of an edge come directly after its source, so
        # that what they replace merges as if the source had written it.
        return (*before, node, *after, *self.leaving.pop(node.id, []))

    def _landing(self, node: Node) -> Node:
        """The node with the targets that its policies name replaced by the guardrails before them."""
        route, _, target = node.on_failure.partition(":")
        if target in self.entry:
            node = replace(node, on_failure=f"{route}:{self.entry[target]}")
        if node.guard is not None and node.guard.reroute in self.entry:
            node = replace(node, guard=replace(node.guard, reroute=self.entry[node.guard.reroute]))
        if node.hold is not None:
            action, _, target = (node.hold.on_timeout or "").partition(":")
            if action == "branch" and target in self.entry:
                node = replace(node, hold=replace(node.hold, on_timeout=f"branch:{self.entry[target]}"))
        return node

    def _edge(self, edge: Edge) -> list[Edge]:
        self._require_readable(edge)
        source, target = self.exit.get(edge.source, edge.source), self._into(edge.target)
        row = [node.id for node in self.between.get(edge.id, ())]
        return [
            replace(edge, source=source, target=row[0] if row else target),
            *([self._link(*pair) for pair in pairwise([*row, target])] if row else []),
        ]

    def _links(self) -> list[Edge]:
        names = dict.fromkeys([*self.before, *self.after])
        rows = [[*self.before.get(name, ()), None, *self.after.get(name, ())] for name in names]
        return [
            self._link(*pair)
            for name, row in zip(names, rows, strict=True)
            for pair in pairwise([name if node is None else node.id for node in row])
        ]

    def _link(self, source: str, target: str) -> Edge:
        return Edge(id=self.flow.free_id(source, target), source=source, target=target)

    def _require_readable(self, edge: Edge) -> None:
        if edge.when is None or edge.source not in self.exit:
            return
        try:
            names = compile_expr(edge.when).names
        except ExprSyntaxError:
            return  # validation reports it
        self.problems += [
            GraphProblem(
                rule="guard-condition",
                message=f"it reads {name!r} of {edge.source!r}, but leaves from the guard after it",
                edge=edge.id,
                fix="let the node store the value in a field of the state, and read that field",
            )
            for name in sorted(_OF_THE_NODE.intersection(path[0] for path in names))
        ]


def _clash(name: str) -> GraphProblem:
    return GraphProblem(
        rule="guard-id",
        message="a guard needs this id for its checks, but a node already has it",
        node=name,
        fix="give that node or the guarded node another id=",
    )
