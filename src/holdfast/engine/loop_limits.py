"""Limits of loops: how often a loop edge is taken, and how often a node is visited."""

from __future__ import annotations

from holdfast.engine.decision import CannotContinueError
from holdfast.model.graph import Graph
from holdfast.model.position import Scope


def is_loop_exhausted(graph: Graph, scope: Scope, e: int) -> bool:
    """Whether a loop edge reached its maximum; it is then treated as if its condition were false."""
    edge = graph.edges[e]
    return edge.loop is not None and edge.on_limit == "continue" and scope.loop_counts.get(e, 0) >= edge.loop


def require_turn(graph: Graph, scope: Scope, e: int) -> None:
    """Raises CannotContinueError if the edge begins a turn that the loop may not have."""
    edge, taken = graph.edges[e], scope.loop_counts.get(e, 0)
    if edge.loop is not None and taken >= edge.loop:
        how = (
            f"had {taken + 1} turns and would begin another, but its limit is {taken} after the first"
            if edge.loop
            else "has one turn, and would begin another"
        )
        raise CannotContinueError("loop_limit", f"the loop that begins at {edge.target!r} {how}", edge.source)


def require_visit(graph: Graph, scope: Scope, node: int, own: int = 0) -> None:
    """Raises CannotContinueError if the node has reached its, or the flow's, maximum of visits."""
    name, cap = graph.nodes[node].id, graph.spec.max_visits
    visits = scope.visits.get(node, 0) - scope.before.get(node, 0)
    if own and visits >= own:
        raise CannotContinueError("loop_limit", f"{name!r} was visited {own} times, which is its limit", name)
    if cap and visits >= cap:
        raise CannotContinueError(
            "loop_limit", f"{name!r} was visited {cap} times, which is the flow's limit", name
        )
