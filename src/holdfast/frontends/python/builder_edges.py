"""How nodes are connected."""

# ruff: noqa: A002  (`id` and `max` are what users call them)

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from holdfast.frontends.python.declarations import Collector
from holdfast.frontends.python.function_parameters import is_coroutine
from holdfast.frontends.python.guard import Guard, guard_edge
from holdfast.frontends.python.handle import node_id
from holdfast.model.diagnostics import GraphProblem
from holdfast.model.graph import START, Edge, EdgeKind
from holdfast.model.program import Router

Condition = str | Callable[..., Any]


class Edges(Collector):
    def start(self, *nodes: str) -> None:
        """Declare the first nodes. Without a call, every node without an incoming edge is a start."""
        self.revision += 1
        self.first = (self.first or []) + [node_id(node) for node in nodes]

    def edge(
        self,
        source: str,
        target: str,
        *,
        when: Condition | None = None,
        otherwise: bool = False,
        id: str | None = None,
        label: str = "",
        weight: int = 0,
        guard: Guard | None = None,
    ) -> None:
        """Connect one node to the next.

        `when`: an expression over the state, or a function of it. `otherwise`: taken when no conditional
        edge of `source` is taken. `guard`: checks that the state has to pass first.
        """
        if source == START:
            if when is not None or otherwise:
                self.wrong("start-condition", f"the edge to {target!r} from the start has a condition",
                            fix="begin with a node and put the condition on its edges")  # fmt: skip
            if guard is not None:
                self.wrong("guard", f"the edge to {target!r} from the start has a guard",
                            fix="give the node guard=Guard(input=[...])")  # fmt: skip
            self.start(target)
            return
        edge = self._edge(source, target, when, otherwise=otherwise, id=id)
        self._connect(edge, when, label=label, weight=weight)
        if guard is not None:
            guard_edge(self, edge.id, edge.source, guard)

    def loop(
        self,
        source: str,
        target: str,
        *,
        when: Condition | None = None,
        max: int = 10,
        on_limit: str = "fail",
        id: str | None = None,
    ) -> None:
        """Connect back to an earlier node, at most `max` times; then the run fails, or with
        `on_limit="continue"` continues after the loop."""
        edge = self._edge(source, target, when, otherwise=False, id=id)
        self._connect(edge, when, loop=max, on_limit=on_limit)

    def _edge(
        self, source: str, target: str, when: Condition | None, *, otherwise: bool, id: str | None
    ) -> Edge:
        kind = EdgeKind.otherwise if otherwise else EdgeKind.always
        if when is not None:
            kind = EdgeKind.when if isinstance(when, str) else EdgeKind.chosen
        edge = Edge(
            id=id or self.free_id(source, target), source=node_id(source), target=node_id(target), kind=kind
        )
        if when is not None and otherwise:
            self.found.append(
                GraphProblem(rule="otherwise", message="it has both `when` and `otherwise`", edge=edge.id)
            )
        return edge

    def _connect(self, edge: Edge, when: Condition | None, **more: Any) -> None:
        self.revision += 1
        values = {field: getattr(edge, field) for field in edge.__struct_fields__} | more
        values["when"] = when if isinstance(when, str) else None
        self.edge_ids.add(edge.id)
        self.note_origin("edge", edge.id)
        self.edges.append(Edge(**values))
        if when is not None and not isinstance(when, str):
            self._route(edge.source, when, {True: (edge.id,), False: ()}, boolean=True)

    def _route(
        self, source: str, fn: Callable[..., Any], choices: dict[Any, tuple[str, ...]], *, boolean: bool
    ) -> None:
        router = Router(
            fn=fn,
            is_async=is_coroutine(fn),
            takes=self.takes_of(source, fn),
            choices=choices,
            boolean=boolean,
        )
        self.routers.setdefault(source, []).append(router)

    def router(self, source: str, fn: Callable[..., Any], targets: Iterable[str]) -> None:
        """`fn` returns what follows: a node of `targets`, a list of several, or None for nothing."""
        choices: dict[Any, tuple[str, ...]] = {None: ()}
        for target in targets:
            choices[node_id(target)] = (self._chosen(source, target),)
        self._route(node_id(source), fn, choices, boolean=False)

    def branch(self, source: str, fn: Callable[..., Any], arms: Mapping[Any, str]) -> None:
        """Take exactly the arm whose key `fn` returns; a key without an arm fails the run."""
        edges = {
            target: self._chosen(source, target) for target in dict.fromkeys(map(node_id, arms.values()))
        }
        choices = {key: (edges[node_id(target)],) for key, target in arms.items()}
        self._route(node_id(source), fn, choices, boolean=False)

    def _chosen(self, source: str, target: str) -> str:
        edge = Edge(
            id=self.free_id(source, target),
            source=node_id(source),
            target=node_id(target),
            kind=EdgeKind.chosen,
        )
        self._connect(edge, None)
        return edge.id

    def chain(self, *nodes: str) -> None:
        """Connect the nodes one after the other."""
        for source, target in pairwise(nodes):
            self.edge(source, target)
