"""Walk: one token per frame, exactly one edge chosen, loops free, goal gates, failure routing.

Edge selection, in order: a condition that holds; the preferred label; a suggested id; the heaviest;
the first by target's name. Goal gates are checked when the walk comes to its end.
"""

from __future__ import annotations

from holdfast.engine.dataflow_mode import EdgePropagation
from holdfast.engine.decision import CannotContinueError, Decision
from holdfast.engine.edge_choice import is_met
from holdfast.engine.loop_limits import is_loop_exhausted, require_turn, require_visit
from holdfast.engine.messages import HandlerFinished
from holdfast.engine.walk_state import PLAIN, SKIPS_BY, ConditionResolver, label_of, note_outcome, outcome_of
from holdfast.model.edge_labels import normal_label
from holdfast.model.graph import END, EdgeKind, Graph, WalkSpec
from holdfast.model.position import Exec, Scope
from holdfast.types.outcome import FAIL

MAX_RESTARTS = 10


def walk_on(flow: EdgePropagation, execution: Exec, message: HandlerFinished) -> None:
    graph, scope = flow.graph, flow.scope
    node = graph.nodes[execution.node]
    outcome = outcome_of(graph, scope, execution, message)
    note_outcome(graph, scope, execution, message)
    if message.reroute is not None:
        target = graph.index[message.reroute]
        _take(flow, next(e for e in graph.out[execution.node] if graph.target[e] == target))
        return
    if _is_terminal(graph, execution.node):
        _terminal(flow, outcome, node.id)
        return
    edge = next_edge(flow.decision, graph, scope, execution, message)
    if edge is not None:
        _take(flow, edge)
    elif outcome == FAIL:
        _route_failure(flow, execution.node)
    elif node.is_gate and graph.out[execution.node]:
        raise CannotContinueError("node_failed", f"no edge of gate {node.id!r} is for its answer", node.id)
    elif scope.walk.get("gates"):
        _terminal(flow, outcome, node.id)


def takes_failure(
    decision: Decision, graph: Graph, scope: Scope, execution: Exec, message: HandlerFinished
) -> bool:
    """Whether the walk continues from a failed node: by a fail edge, a retry target, or its gate at the
    end."""
    spec = graph.nodes[execution.node].walk or PLAIN
    if _is_terminal(graph, execution.node):
        return spec.goal_gate
    # Only a question is asked here: what it notes on the way is undone below.
    before = dict(scope.walk)
    note_outcome(graph, scope, execution, message)
    try:
        return next_edge(decision, graph, scope, execution, message) is not None or bool(
            _failure_targets(graph, execution.node)
        )
    except CannotContinueError:
        return True  # the walk meets the same problem again, and fails the run with it
    finally:
        scope.walk.clear()
        scope.walk.update(before)


def _is_terminal(graph: Graph, node: int) -> bool:
    spec = graph.nodes[node].walk or PLAIN
    return spec.terminal or (not graph.out[node] and not _failure_targets(graph, node))


def next_edge(
    decision: Decision, graph: Graph, scope: Scope, execution: Exec, message: HandlerFinished
) -> int | None:
    edge = select_edge(decision, graph, scope, execution, message)
    failed = outcome_of(graph, scope, execution, message) == FAIL
    return None if edge is not None and failed and not _may_follow_failure(graph, edge) else edge


def select_edge(
    decision: Decision, graph: Graph, scope: Scope, execution: Exec, message: HandlerFinished
) -> int | None:
    outcome = outcome_of(graph, scope, execution, message)
    label = label_of(graph, scope, execution, message)
    extra = {"outcome": outcome, "preferred_label": label}
    seen = ConditionResolver(scope, execution, message, extra, records=decision.pos.strict_names)
    matching: list[int] = []
    plain: list[int] = []
    for e in graph.out[execution.node]:
        if is_loop_exhausted(graph, scope, e):
            continue
        if graph.edges[e].kind is EdgeKind.failure:
            if outcome == FAIL:
                matching.append(e)
        elif graph.edges[e].kind is EdgeKind.chosen:
            if message.routes and e in message.routes:
                matching.append(e)
        elif graph.conditions[e] is None:
            plain.append(e)
        elif is_met(decision, graph, e, seen.by(graph.edges[e])):
            matching.append(e)
    if matching:
        return _best(graph, matching)
    if label:
        labelled = [e for e in plain if normal_label(graph.edges[e].label) == normal_label(label)]
        if labelled:
            return labelled[0]
    for wanted in message.suggested:
        suggested = [e for e in plain if graph.edges[e].towards == wanted]
        if suggested:
            return suggested[0]
    if graph.nodes[execution.node].is_gate and (label or message.suggested or len(plain) > 1):
        return None  # another answer than the one that was given
    return _best(graph, plain) if plain else None


def _best(graph: Graph, edges: list[int]) -> int:
    # By name last, so that the choice does not depend on the order in which edges were declared.
    return min(edges, key=lambda e: (-graph.edges[e].weight, graph.edges[e].towards))


def _may_follow_failure(graph: Graph, edge: int) -> bool:
    """After a failure only a fail edge, or an unconditional one from or into a routing node, is followed."""
    if graph.edges[edge].kind is EdgeKind.failure or graph.edges[edge].when is not None:
        return True
    if graph.nodes[graph.source[edge]].is_gate:
        return False  # nobody gave the answer that it stands for
    ends = (graph.source[edge], graph.target[edge])
    return any(end >= 0 and (graph.nodes[end].walk or PLAIN).routing for end in ends)


def _take(flow: EdgePropagation, edge: int) -> None:
    target = flow.graph.target[edge]
    if target < 0:
        _terminal(flow, flow.scope.walk["outcome"], END)
        return
    require_turn(flow.graph, flow.scope, edge)
    if flow.graph.edges[edge].restart:
        _restart(flow, edge)
    require_visit(flow.graph, flow.scope, target, (flow.graph.nodes[target].walk or PLAIN).max_visits)
    if flow.graph.spec.mirrors:
        flow.scope.walk["came_by"] = flow.graph.edges[edge].id
    flow.do("F", edge, flow.frame)
    flow.start(target)


def _restart(flow: EdgePropagation, edge: int) -> None:
    """The walk restarts. Visits are not reset, because idempotency keys and questions are named by them;
    limits count from here."""
    graph, scope = flow.graph, flow.scope
    limit = graph.spec.max_restarts if isinstance(graph.spec.max_restarts, int) else MAX_RESTARTS
    restarts = int(scope.walk.get("restarts", 0))
    if restarts >= limit:
        name = graph.edges[edge].source
        raise CannotContinueError(
            "loop_limit", f"{name!r} restarted the walk {restarts} times, which is the limit", name
        )
    # A replay still needs this step's outcome (D-26).
    kept = {key: scope.walk[key] for key in ("label", "suggested", SKIPS_BY) if key in scope.walk}
    scope.walk.clear()
    scope.walk.update({**kept, "restarts": restarts + 1})
    flow.do("R", edge)
    flow.frame = 0


def _jump(flow: EdgePropagation, name: str) -> None:
    """To a retry target: no edge leads there, so the node starts in the current frame."""
    node = flow.graph.node_index(name)
    require_visit(flow.graph, flow.scope, node, (flow.graph.nodes[node].walk or PLAIN).max_visits)
    flow.scope.walk.pop("came_by", None)
    flow.do("Z", node, flow.frame)
    flow.started(node)


def _failure_targets(graph: Graph, node: int) -> list[str]:
    spec = graph.nodes[node].walk or PLAIN
    return _own_targets(graph, spec) if graph.spec.own_targets else _targets(graph, spec)


def _own_targets(graph: Graph, spec: WalkSpec) -> list[str]:
    return [n for n in (spec.retry_target, spec.fallback_retry_target) if n and n in graph.index]


def _targets(graph: Graph, spec: WalkSpec) -> list[str]:
    ours = (graph.spec.retry_target, graph.spec.fallback_retry_target)
    return _own_targets(graph, spec) + [name for name in ours if name and name in graph.index]


def _gate(graph: Graph, name: str) -> WalkSpec:
    """The settings of a gate, which may be in a branch."""
    if name in graph.index:
        return graph.nodes[graph.index[name]].walk or PLAIN
    inside = [_gate(inner, name) for inner in graph.subgraphs.values()]
    return next((spec for spec in inside if spec.goal_gate), PLAIN)


def _terminal(flow: EdgePropagation, outcome: str, name: str) -> None:
    """The end of the walk, unless a goal gate that was visited is not satisfied."""
    gates: dict[str, bool] = flow.scope.walk.get("gates", {})
    unmet = [gate for gate, met in gates.items() if not met]
    if not unmet:
        if outcome == FAIL:
            why = flow.scope.walk.get("reason") or f"the walk ended at {name!r} after a failure"
            raise CannotContinueError("node_failed", why, name)
        return
    targets = _targets(flow.graph, _gate(flow.graph, unmet[0]))
    if not targets and flow.scope.owner is not None and flow.graph.spec.mirrors:
        # A branch: the outer walk checks its gates.
        if outcome == FAIL:
            raise CannotContinueError("node_failed", flow.scope.walk.get("reason", ""), name)
        return
    jumps = int(flow.scope.walk.get("jumps", 0))
    if not targets:
        raise CannotContinueError("node_failed", "Goal gate unsatisfied and no retry target", unmet[0])
    if jumps >= flow.graph.spec.max_goal_jumps:
        why = f"the goal gate {unmet[0]!r} is not satisfied after {jumps} retries"
        raise CannotContinueError("node_failed", why, unmet[0])
    # A gate stays unsatisfied until it succeeds: not visiting it again does not help.
    flow.scope.walk["jumps"] = jumps + 1
    _jump(flow, targets[0])


def _route_failure(flow: EdgePropagation, node: int) -> None:
    targets = _failure_targets(flow.graph, node)
    name = flow.graph.nodes[node].id
    if not targets:
        why = flow.scope.walk.get("reason") or f"{name!r} failed, and no edge or retry target handles it"
        raise CannotContinueError("node_failed", why, name)
    jumps = dict(flow.scope.walk.get("fail_jumps", {}))
    if jumps.get(name, 0) >= flow.graph.spec.max_goal_jumps:
        raise CannotContinueError(
            "loop_limit",
            f"{name!r} failed and went to its retry target {jumps[name]} times, which is the limit",
            name,
        )
    jumps[name] = jumps.get(name, 0) + 1
    flow.scope.walk["fail_jumps"] = jumps
    _jump(flow, targets[0])
