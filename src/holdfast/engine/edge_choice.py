"""Which edges of a settled node fire: their conditions, routers, and the limits of loops."""

from __future__ import annotations

from typing import Any

from holdfast.engine.decision import CannotContinueError, Decision
from holdfast.engine.loop_limits import is_loop_exhausted
from holdfast.errors import MissingNameError, NotComparableError
from holdfast.model.expressions import Resolve, truthy
from holdfast.model.graph import EdgeKind, Graph
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, Scope


def chosen_edges(
    decision: Decision,
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
            if resolve is None:
                resolve = resolver(scope.tree, execution.frame, extra, records=decision.pos.strict_names)
            if is_met(decision, graph, e, resolve):
                fired.append(e)
                conditional = True
    if otherwise and not conditional:
        fired += otherwise
    return fired


def is_met(decision: Decision, graph: Graph, e: int, resolve: Resolve) -> bool:
    """Whether the condition of an edge is met. Raises CannotContinueError for one that cannot be decided:
    were it false, a misspelt name would lead the run around the edge."""
    condition = graph.conditions[e]
    if condition is None:
        return False
    try:
        return truthy(condition.evaluate(resolve))
    except (MissingNameError, NotComparableError) as problem:
        if not decision.is_strict():
            return truthy(condition.lenient(resolve))
        edge = graph.edges[e]
        text = f"edge {edge.id!r}: its condition {edge.when!r} cannot be decided: {problem.message}."
        raise CannotContinueError(problem.code, f"{text} {problem.hint}", edge.source) from None
