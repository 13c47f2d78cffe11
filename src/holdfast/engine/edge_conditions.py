"""Which edges of a settled node fire: their conditions, routers, and the limits of loops."""

from __future__ import annotations

from typing import Any

from holdfast.model.expr import truthy
from holdfast.model.graph import EdgeKind, Graph
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, Scope


def chosen_edges(
    graph: Graph,
    scope: Scope,
    execution: Exec,
    *,
    routes: list[int] | None,
    failed: bool,
    extra: dict[str, Any],
) -> list[int]:
    """Which out-edges of a settled node fire. User code has chosen already (`routes`, D-26)."""
    fired: list[int] = []
    otherwise: list[int] = []
    conditional = False
    resolve = None
    for e in graph.out[execution.node]:
        kind = graph.edges[e].kind
        if graph.loops and graph.edges[e].loop is not None and is_loop_exhausted(graph, scope, e):
            continue
        if failed or kind is EdgeKind.failure:
            if failed and kind is EdgeKind.failure:
                fired.append(e)
        elif kind is EdgeKind.always:
            fired.append(e)
        elif kind is EdgeKind.otherwise:
            otherwise.append(e)
        elif kind is EdgeKind.chosen:
            if routes and e in routes:
                fired.append(e)
                conditional = True
        else:
            condition = graph.conditions[e]
            if resolve is None:
                resolve = resolver(scope.tree, execution.frame, extra)
            if condition is not None and truthy(condition.evaluate(resolve)):
                fired.append(e)
                conditional = True
    if otherwise and not conditional:
        fired += otherwise
    return fired


def is_loop_exhausted(graph: Graph, scope: Scope, e: int) -> bool:
    """Whether a loop edge reached its maximum; it is then treated as if its condition were false."""
    edge = graph.edges[e]
    return edge.loop is not None and edge.on_limit == "continue" and scope.loop_counts.get(e, 0) >= edge.loop
