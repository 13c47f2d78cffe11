"""Walk: one token per frame, exactly one edge chosen, loops free, goal gates, failure routing.

Edge selection, in order: a condition that holds; the preferred label; a suggested id; the heaviest;
the first by target's name. Goal gates are checked when the walk reaches a terminal node.
"""

from __future__ import annotations

import re
from typing import Any

from holdfast.engine.dataflow import Flow, Problem, used_up
from holdfast.engine.messages import Finished
from holdfast.model.expr import truthy
from holdfast.model.graph import END, EdgeKind, Graph, WalkSpec
from holdfast.model.position import Exec, Scope
from holdfast.model.resolving import resolver
from holdfast.types.value import FrozenList

PLAIN = WalkSpec()
# `[Y] `, `Y) ` or `Y - ` in front of a label.
_ACCELERATOR = re.compile(r"^(\[\w+\]|\w\)|\w -)\s*")


def walk_on(flow: Flow, execution: Exec, message: Finished) -> None:
    graph, scope = flow.graph, flow.scope
    node = graph.nodes[execution.node]
    note_outcome(graph, scope, execution.node, message)
    outcome = scope.walk["outcome"]
    if message.reroute is not None:
        target = graph.index[message.reroute]
        _take(flow, next(e for e in graph.out[execution.node] if graph.target[e] == target))
        return
    if _is_terminal(graph, execution.node):
        _terminal(flow, outcome, node.id)
        return
    edge = next_edge(graph, scope, execution, message)
    if edge is not None:
        _take(flow, edge)
    elif outcome == "fail":
        _route_failure(flow, execution.node)


def takes_failure(graph: Graph, scope: Scope, execution: Exec, message: Finished) -> bool:
    """Whether the walk goes on from a failed node: by a fail edge, a retry target, or its gate at the end."""
    if _is_terminal(graph, execution.node):
        return bool((graph.nodes[execution.node].walk or PLAIN).goal_gate)
    before = dict(scope.walk)
    note_outcome(graph, scope, execution.node, message)
    try:
        return next_edge(graph, scope, execution, message) is not None or bool(
            _targets(graph, execution.node)
        )
    finally:
        scope.walk.clear()
        scope.walk.update(before)


def _is_terminal(graph: Graph, node: int) -> bool:
    return (graph.nodes[node].walk or PLAIN).terminal or not graph.out[node]


def next_edge(graph: Graph, scope: Scope, execution: Exec, message: Finished) -> int | None:
    edge = select_edge(graph, scope, execution, message)
    failed = scope.walk["outcome"] == "fail"
    return None if edge is not None and failed and not _may_follow_failure(graph, edge) else edge


def note_outcome(graph: Graph, scope: Scope, node: int, message: Finished) -> None:
    """What later nodes and gates read. A routing node passes on the outcome that led to it."""
    spec = graph.nodes[node].walk or PLAIN
    if not (spec.routing and "outcome" in scope.walk):
        scope.walk["outcome"] = message.outcome
        scope.walk["label"] = message.label
    # What code suggested is part of what happened: a replay reads it here (D-26).
    if message.suggested:
        scope.walk["suggested"] = FrozenList(message.suggested)
    else:
        scope.walk.pop("suggested", None)
    if spec.goal_gate:
        gates = dict(scope.walk.get("gates", {}))
        gates[graph.nodes[node].id] = scope.walk["outcome"] in ("success", "partial_success")
        scope.walk["gates"] = gates


def select_edge(graph: Graph, scope: Scope, execution: Exec, message: Finished) -> int | None:
    extra: dict[str, Any] = {
        "outcome": scope.walk["outcome"],
        "preferred_label": scope.walk.get("label", ""),
        "context": scope.tree.see(execution.frame, "scratch"),
    }
    resolve = resolver(scope.tree, execution.frame, extra)
    matching: list[int] = []
    plain: list[int] = []
    for e in graph.out[execution.node]:
        condition = graph.conditions[e]
        if used_up(graph, scope, e):
            continue
        if graph.edges[e].kind is EdgeKind.failure:
            if scope.walk["outcome"] == "fail":
                matching.append(e)
        elif graph.edges[e].kind is EdgeKind.chosen:
            if message.routes and e in message.routes:
                matching.append(e)
        elif condition is None:
            plain.append(e)
        elif truthy(condition.evaluate(resolve)):
            matching.append(e)
    if matching:
        return _best(graph, matching)
    label = scope.walk.get("label", "")
    if label:
        labelled = [e for e in plain if normal(graph.edges[e].label) == normal(label)]
        if labelled:
            return labelled[0]
    for wanted in message.suggested:
        suggested = [e for e in plain if graph.edges[e].target == wanted]
        if suggested:
            return suggested[0]
    return _best(graph, plain) if plain else None


def normal(label: str) -> str:
    """Labels are compared without case and without an accelerator such as `[Y] `, `Y) ` or `Y - `."""
    text = label.strip().lower()
    return _ACCELERATOR.sub("", text).strip()


def _best(graph: Graph, edges: list[int]) -> int:
    return min(edges, key=lambda e: (-graph.edges[e].weight, graph.edges[e].target))


def _may_follow_failure(graph: Graph, edge: int) -> bool:
    """After a failure only a fail edge, or an unconditional one into a routing node, is followed."""
    if graph.edges[edge].kind is EdgeKind.failure or graph.edges[edge].when is not None:
        return True
    target = graph.target[edge]
    return target >= 0 and (graph.nodes[target].walk or PLAIN).routing


def _take(flow: Flow, edge: int) -> None:
    target = flow.graph.target[edge]
    if target < 0:
        _terminal(flow, flow.scope.walk["outcome"], END)
        return
    flow.check_cap(edge)
    flow.check_visits(target, (flow.graph.nodes[target].walk or PLAIN).max_visits)
    flow.do("F", edge, flow.frame)
    flow.start(target)


def _jump(flow: Flow, name: str) -> None:
    """To a retry target: no edge leads there, so the node starts in the frame at hand."""
    node = flow.graph.node_index(name)
    flow.check_visits(node, (flow.graph.nodes[node].walk or PLAIN).max_visits)
    flow.do("Z", node, flow.frame)
    flow.started(node)


def _targets(graph: Graph, node: int | None) -> list[str]:
    spec = graph.nodes[node].walk if node is not None else None
    found = [spec.retry_target, spec.fallback_retry_target] if spec else []
    found += [graph.spec.retry_target, graph.spec.fallback_retry_target]
    return [name for name in found if name and name in graph.index]


def _terminal(flow: Flow, outcome: str, name: str) -> None:
    """The end of the walk, unless a goal gate that was visited is not satisfied."""
    gates: dict[str, bool] = flow.scope.walk.get("gates", {})
    unmet = [gate for gate, met in gates.items() if not met]
    if not unmet:
        if outcome == "fail":
            raise Problem("node_failed", f"the walk ended at {name!r} after a failure", name)
        return
    targets = _targets(flow.graph, flow.graph.index[unmet[0]])
    jumps = int(flow.scope.walk.get("jumps", 0))
    if not targets or jumps >= flow.graph.spec.max_goal_jumps:
        why = "it has no retry target" if not targets else f"it was retried {jumps} times"
        raise Problem("node_failed", f"the goal gate {unmet[0]!r} is not satisfied and {why}", unmet[0])
    flow.scope.walk["jumps"] = jumps + 1
    flow.scope.walk["gates"] = {g: met for g, met in gates.items() if met}
    _jump(flow, targets[0])


def _route_failure(flow: Flow, node: int) -> None:
    targets = _targets(flow.graph, node)
    name = flow.graph.nodes[node].id
    if not targets:
        raise Problem("node_failed", f"{name!r} failed, and no edge or retry target takes it on", name)
    jumps = dict(flow.scope.walk.get("fail_jumps", {}))
    if jumps.get(name, 0) >= flow.graph.spec.max_goal_jumps:
        raise Problem("loop_limit", f"{name!r} failed {jumps[name]} times and went to its retry target", name)
    jumps[name] = jumps.get(name, 0) + 1
    flow.scope.walk["fail_jumps"] = jumps
    _jump(flow, targets[0])
