"""Maps and parallel nodes: opens their children, and settles the node when all are done. A sub-flow (see also
`subflow`) is a fan-out with one child."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.engine import failures, parallel_join, settle, timers
from holdfast.engine.dataflow_mode import EdgePropagation
from holdfast.engine.decision import CannotContinueError, Decision, node_of
from holdfast.engine.messages import HandlerFinished
from holdfast.engine.subflow import subflow_outputs
from holdfast.errors import MapFailedError, MissingNameError, NotComparableError
from holdfast.model.child_scopes import NotAListError, child_inputs
from holdfast.model.graph import Node
from holdfast.model.position import Exec, Scope
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, StepBody
from holdfast.types.record import Kind, Op
from holdfast.types.value import FrozenDict, FrozenList


def open_children(decision: Decision, execution: Exec) -> None:
    """A map or sub-flow starts: its children are opened by a separate record."""
    pos = decision.pos
    scope = pos.scopes[execution.scope]
    node = node_of(decision.graph, pos, execution)
    body = AttemptBody("children")
    record = decision.draft(Kind.attempt, body, node=node.id, execution=execution, effect=node.effect)
    pos.head, pos.at = record.seq, record.at
    wrong = _input_problem(decision, scope, execution)
    if wrong is not None:
        failures.give_up(decision, execution, wrong)
        return
    misfit = decision.fits.inputs(decision, execution) if decision.fits else None
    if misfit is not None:
        failures.give_up(decision, execution, misfit)
        return
    opened = _start_children(decision, scope, execution, body.moves)
    # An empty list has no child that could complete it later.
    if not execution.items:
        complete_parent(decision, execution)
    elif node.parallel and node.timeout is not None:
        timers.limit(decision, execution, node, node.timeout)
    for fresh in opened:
        settle.open_exec(decision, fresh)


def _input_problem(decision: Decision, scope: Scope, execution: Exec) -> ErrorInfo | None:
    """Why there is nothing to start the children from."""
    pos = decision.pos
    opens = execution.items is not None
    short = _too_few(node_of(decision.graph, pos, execution), len(execution.items or ()))
    if opens and short is not None:
        return short
    if opens and pos.strict_names:
        return None
    try:
        # The input of a run that was started before the rule was read without what it did not find.
        child_inputs(pos.scope_graph(decision.graph, scope), pos, scope, execution, strict=opens)
    except NotAListError as wrong:
        return ErrorInfo("node_failed", "NotAListError", str(wrong))
    except (MissingNameError, NotComparableError) as wrong:
        if opens and not decision.is_strict():
            return None
        return unreadable(node_of(decision.graph, pos, execution), "its input", wrong)
    return None


def _too_few(node: Node, items: int) -> ErrorInfo | None:
    tolerance = node.map.tolerance if node.map is not None else msgspec.UNSET
    if tolerance is msgspec.UNSET or not tolerance.is_short(items):
        return None
    text = f"map node {node.id!r}: there are {items} items, and {tolerance.successes} must succeed"
    return ErrorInfo(MapFailedError.code, MapFailedError.__name__, text)


def unreadable(node: Node, what: str, wrong: MissingNameError | NotComparableError) -> ErrorInfo:
    text = f"node {node.id!r}: {what} cannot be read: {wrong.message}. {wrong.hint}"
    return ErrorInfo(wrong.code, type(wrong).__name__, text)


def _start_children(decision: Decision, scope: Scope, execution: Exec, moves: list[Any]) -> list[Exec]:
    flow = EdgePropagation(decision, scope, moves)
    opened: list[Exec] = []
    for child in flow.open_children(execution):
        inner = EdgePropagation(decision, child, moves)
        try:
            inner.begin()
        except CannotContinueError as problem:
            failures.fail_scope(decision, child, problem)
        opened += inner.opened
    return opened


def go_on_with_owner(decision: Decision, owner: Exec, body: StepBody) -> None:
    spec = node_of(decision.graph, decision.pos, owner).parallel
    if spec and parallel_join.is_decided(spec, owner.results):
        parallel_join.drop_losers(decision, owner, body)
        complete_parent(decision, owner)
        return
    if len(owner.results) == len(owner.items or ()):
        complete_parent(decision, owner)
        return
    opened = _start_children(decision, decision.pos.scopes[owner.scope], owner, body.moves)
    for fresh in opened:
        settle.open_exec(decision, fresh)


def complete_parent(decision: Decision, owner: Exec) -> None:
    """All children are done: the map, parallel node or sub-flow itself settles."""
    node = node_of(decision.graph, decision.pos, owner)
    if node.parallel:
        parallel_join.settle_join(decision, owner, node, node.parallel)
        return
    # In the order of the items, not in the order in which they ended: a replay must give the same list.
    results = [owner.results[i] for i in range(len(owner.items or ()))]
    ops: list[Op] = []
    if node.map is not None:
        ops = [("scratch", node.map.into, "set", FrozenList([_item_value(r) for r in results]))]
    elif node.subflow is not None:
        try:
            ops = subflow_outputs(decision, node, results[0])
        except (MissingNameError, NotComparableError) as wrong:
            failures.give_up(decision, owner, unreadable(node, "its output", wrong))
            return
    fitting = decision.fits.ops(decision, owner, ops) if decision.fits else ops
    if isinstance(fitting, ErrorInfo):
        failures.give_up(decision, owner, fitting)
        return
    settle.settle(
        decision,
        owner,
        HandlerFinished(
            scope=owner.scope,
            node=owner.node,
            visit=owner.visit,
            ops=fitting,
            duration=max(0, decision.now - decision.pos.at),
        ),
    )


def _item_value(result: Any) -> Any:
    if isinstance(result, FrozenDict) and "failed" in result:
        return result
    output = result["output"]
    return output if output is not None else result["state"]
