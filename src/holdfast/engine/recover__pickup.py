"""A run that is loaded between two records of one decision: what the later ones would have done is done now.

A worker never meets that, because the records of a decision commit together. A fork may begin at any
record, and a run that fell back past a damaged one stands where it must.
"""

from __future__ import annotations

from holdfast.engine import (
    breakpoints,
    child_scopes,
    child_scopes__joining,
    end,
    failures,
    holds,
    settle,
    timers,
)
from holdfast.engine.decision import Decision, node_of
from holdfast.model.child_scopes import PARENTS
from holdfast.model.graph import Node, NodeKind
from holdfast.model.position import SETTLED, Exec, Position

OPENED = PARENTS | {NodeKind.hold, NodeKind.timer}
"""Nodes that need something besides a handler."""


def pick_up(decision: Decision) -> None:
    """Open what has started but was not opened; end what has nothing left to do."""
    pos = decision.pos
    for execution in list(pos.execs.values()):
        if (execution.scope, execution.node) in pos.execs:
            _pick_up(decision, execution, node_of(decision.graph, pos, execution))
    _end_what_is_over(decision)


def _pick_up(decision: Decision, execution: Exec, node: Node) -> None:
    if SETTLED in execution.subs:
        return
    waits_to_open = execution.phase in ("work", "children") and node.kind in OPENED
    if waits_to_open and breakpoints.untouched(execution) and breakpoints.stops(decision, execution):
        breakpoints.pause(decision, execution)
        return
    if node.kind is NodeKind.hold and execution.phase == "work":
        holds.ask_node(decision, execution, node)
    elif node.kind is NodeKind.timer and execution.phase == "work":
        timers.sleep(decision, execution, node)
    elif node.kind in PARENTS and execution.phase == "children":
        _pick_up_parent(decision, execution)


def _pick_up_parent(decision: Decision, execution: Exec) -> None:
    if not execution.opened and not execution.results:
        child_scopes.open_children(decision, execution)
    elif execution.items is not None and _is_complete(decision, execution):
        child_scopes.complete_parent(decision, execution)
    elif execution.error is not None and not _has_children(decision.pos, execution):
        failures.child_failed(decision, execution, execution.error)


def _is_complete(decision: Decision, execution: Exec) -> bool:
    spec = node_of(decision.graph, decision.pos, execution).parallel
    if spec and child_scopes__joining.is_decided(spec, execution.results):
        return not _has_children(decision.pos, execution)
    return len(execution.results) == len(execution.items or ())


def _has_children(pos: Position, owner: Exec) -> bool:
    return any(scope.owner == (owner.scope, owner.node) for scope in pos.scopes.values())


def _end_what_is_over(decision: Decision) -> None:
    pos = decision.pos
    if decision.ended or pos.failing is not None or pos.cancelling is not None or pos.status != "running":
        return
    idle = [s for s in pos.scopes.values() if not s.active]
    stuck = next((s for s in idle if s.tokens or s.open_loops), None)
    if stuck is not None:
        end.fail_run(decision, settle.stall(pos, decision.graph, stuck))
    elif not pos.execs:
        end.end_run(decision, "completed", None)
