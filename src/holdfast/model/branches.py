"""The results of a parallel node's branches, as its join and later stages read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from holdfast.model.graph import Graph
from holdfast.model.position import Position, Scope
from holdfast.model.record_bodies import ErrorInfo
from holdfast.types.value import FrozenDict

GATES = "gates"
"""Goal gates that were passed in the branch: for the walk around it, not for stages."""
BRANCH_NOTES = "internal.branch"
"""In the state of a branch: what its stages leave for its result, and whose they are (`scope`)."""
_LEFT = ("verdict", "artifacts", "said")
# Keys that the walk itself writes into its scratch; every branch has its own.
_WALK_FIELDS = ("outcome", "preferred_label", "current_node")
_INTERNAL = "internal."


def branch_result(
    graph: Graph, pos: Position, scope: Scope, first: str, error: ErrorInfo | None
) -> FrozenDict:
    """`first`: the branch's first stage, which identifies it."""
    assert scope.owner is not None
    owner = pos.execs[scope.owner]
    scope.tree.fill_all()
    around = pos.scopes[owner.scope].tree.see(owner.frame, "scratch")
    inside = scope.tree.see(0, "scratch")
    updates = _changes(around, inside)
    walk = scope.walk
    outcome = str(walk.get("outcome", "success")) if error is None else "fail"
    score: Any = updates.get("score", 0)
    return FrozenDict(
        {
            "id": first,
            "outcome": outcome,
            "notes": walk.get("notes", "") if error is None else "",
            "context_updates": FrozenDict(updates),
            "score": score if isinstance(score, (int, float)) else 0,
            "failure_reason": walk.get("reason", "") if error is None else error.message,
            **_left(inside, scope.path),
            GATES: FrozenDict({**walk.get("gates", {}), **_failed_gates(graph, pos, scope)}),
        }
    )


def _left(inside: Mapping[str, Any], path: str) -> dict[str, Any]:
    """What its own stages noted; a branch also has what the walk around it noted."""
    found: Any = inside.get(BRANCH_NOTES)
    known: Mapping[str, Any] = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
    return {name: known[name] for name in _LEFT if name in known and known.get("scope") == path}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in after.items()
        if key not in _WALK_FIELDS and not key.startswith(_INTERNAL) and not _same(before, key, value)
    }


def _same(before: Mapping[str, Any], key: str, value: Any) -> bool:
    if key not in before:
        return False
    old = before[key]
    return old is value or (type(old) is type(value) and old == value)


def _failed_gates(graph: Graph, pos: Position, scope: Scope) -> dict[str, bool]:
    """Goal gates that the branch did not pass."""
    inner = pos.scope_graph(graph, scope)
    failed = [e.node for (path, _), e in pos.execs.items() if path == scope.path and e.phase == "failed"]
    specs = [(inner.nodes[node].id, inner.nodes[node].walk) for node in failed]
    return {name: False for name, spec in specs if spec is not None and spec.goal_gate}
