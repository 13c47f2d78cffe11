"""A handler ended: its step is settled, its edges fire, what became ready starts.

This module, breakpoints, failures, fan_out, holds, in_doubt, parallel_join, retry and timers import each
other: mutual recursion, on purpose. A step that settles may start a hold, a timer or a child scope, and each
of these ends by settling a step.
"""

from __future__ import annotations

from typing import Any

from holdfast.engine import breakpoints, end, failures, fan_out, holds, in_doubt, timers
from holdfast.engine.dataflow_mode import EdgePropagation
from holdfast.engine.decision import CannotContinueError, Decision, lists_checkpoint, node_of, side_of
from holdfast.engine.edge_choice import chosen_edges
from holdfast.engine.messages import HandlerFinished
from holdfast.engine.walk_mode import walk_on
from holdfast.engine.walk_state import with_walk_fields
from holdfast.errors import StateError
from holdfast.model.apply import apply_record, settle_exec
from holdfast.model.child_scopes import PARENTS, result_of
from holdfast.model.graph import Graph, Node, NodeKind
from holdfast.model.position import SETTLED, Exec, Position, Scope, naps_of
from holdfast.model.record_bodies import AttemptBody, StepBody, SubstepBody
from holdfast.types.record import Kind
from holdfast.types.value import FrozenDict, FrozenList


def on_handler_finished(decision: Decision, message: HandlerFinished) -> None:
    """All ends of handlers come here. A message about an execution that no longer exists is ignored."""
    pos = decision.pos
    execution = pos.execs.get((message.scope, message.node))
    # The handler of a dropped branch may still report: its node may be gone, or in a later visit.
    if execution is None or execution.visit != message.visit or execution.phase == "failed":
        return
    if message.probe is not None:
        in_doubt.on_probe_finished(decision, execution, message)
    elif message.error is None:
        settle(decision, execution, message)
    else:
        failures.on_attempt_failed(decision, execution, message)


def settle(decision: Decision, execution: Exec, message: HandlerFinished, *, failed: bool = False) -> None:
    """Write the step, then fire its edges."""
    pos = decision.pos
    scope = pos.scopes[execution.scope]
    graph = decision.graph if scope.graph == "" else pos.scope_graph(decision.graph, scope)
    node = graph.nodes[execution.node]
    # The engine is pure and calls no code: the step waits until a worker has called the router.
    if message.routes is None and not failed and graph.chooses[execution.node] and message.reroute is None:
        _let_code_choose(decision, execution, node, message)
        return
    if graph.spec.mirrors:
        message.ops = with_walk_fields(graph, scope, execution, message)
    body = StepBody(
        message.ops,
        [],
        message.duration,
        message.output,
        message.promoted,
        message.usage,
        message.error,
        message.notes,
        message.routes,
    )
    record = decision.draft(
        Kind.step,
        body,
        node=node.id,
        execution=execution,
        effect=node.effect,
        outcome=message.outcome,
        listed=graph.lists_after[execution.node]
        if not pos.checkpoints
        else lists_checkpoint(pos, graph, node, "after", scope.path),
    )
    if message.inbox:
        side_of(record).inbox_done.append(message.inbox)
    if message.memories:
        side_of(record).memories = message.memories
    if execution.token or pos.holds or pos.timers:
        _close_rows(pos, execution, record)
    # Before the edges fire: executions that start here are dated from this record.
    pos.head, pos.at = record.seq, record.at
    settle_exec(decision.graph, pos, execution, record, body)
    opened = _move_on(decision, graph, scope, execution, message, body, failed=failed)
    if graph.walk:
        body.walk = FrozenDict(scope.walk)
    if not scope.active:
        finish_scopes(decision, scope, body)
    for fresh in opened:
        if graph.opens[fresh.node] or fresh.phase == "join" or pos.breaks or pos.checkpoints:
            open_exec(decision, fresh)


def _let_code_choose(decision: Decision, execution: Exec, node: Node, message: HandlerFinished) -> None:
    """A node without a handler (a hold, a map, ...) has edges that Python code chooses among. Its result is
    recorded; a worker then calls the code, and its choice settles the step (D-26)."""
    value = FrozenDict(
        {
            "ops": FrozenList(message.ops),
            "outcome": message.outcome,
            "duration": message.duration,
            "output": message.output,
            "notes": message.notes,
            "usage": None if message.usage is None else (message.usage.tokens, message.usage.cost),
        }
    )
    body = SubstepBody(SETTLED, "settled", value)
    record = decision.draft(
        Kind.substep, body, node=node.id, execution=execution, effect=node.effect, outcome=message.outcome
    )
    if message.inbox:
        side_of(record).inbox_done.append(message.inbox)
    _close_rows(decision.pos, execution, record)
    apply_record(decision.graph, decision.pos, record, body)
    decision.starts.append(execution)


def _move_on(
    decision: Decision,
    graph: Graph,
    scope: Scope,
    execution: Exec,
    message: HandlerFinished,
    body: StepBody,
    *,
    failed: bool,
) -> list[Exec]:
    only = graph.only[execution.node]
    if only >= 0 and not failed and message.reroute is None:
        return _go(decision, graph, scope, execution, only, body)
    flow = EdgePropagation(decision, scope, body.moves, execution.frame)
    try:
        if graph.walk:
            walk_on(flow, execution, message)
        else:
            fired = _fired(decision, graph, scope, execution, message, failed=failed)
            flow.settle(execution.node, fired)
    except CannotContinueError as problem:
        failures.fail_scope(decision, scope, problem)
    return flow.opened


def _fired(
    decision: Decision, graph: Graph, scope: Scope, execution: Exec, message: HandlerFinished, *, failed: bool
) -> list[int]:
    if message.reroute is not None:
        target = graph.index[message.reroute]
        return [e for e in graph.out[execution.node] if graph.target[e] == target][:1]
    extra: dict[str, Any] = {"outcome": message.outcome, "output": message.output}
    return chosen_edges(decision, graph, scope, execution, routes=message.routes, failed=failed, extra=extra)


def _go(
    decision: Decision, graph: Graph, scope: Scope, execution: Exec, edge: int, body: StepBody
) -> list[Exec]:
    """The common case, kept fast: one edge, one target, no join."""
    target = graph.target[edge]
    visit = scope.visits.get(target, 0) + 1
    path = scope.path
    body.moves.append(("G", path, edge, visit))
    scope.visits[target] = visit
    scope.active += 1
    pos = decision.pos
    started = pos.execs[(path, target)] = Exec(path, target, visit, execution.frame, pos.head)
    decision.starts.append(started)
    return [started] if graph.needs_opening[target] or pos.breaks or pos.checkpoints else []


def _close_rows(pos: Position, execution: Exec, record: Any) -> None:
    """Timers and holds that this execution waited for are closed in the same transaction."""
    tokens = [token for token in (execution.token, *naps_of(pos, execution)) if token]
    if tokens:
        side_of(record).close_timers += tokens
    if pos.holds:
        holds.close_holds(pos, execution, side_of(record), "superseded")


def open_exec(decision: Decision, execution: Exec) -> None:
    """What a started node needs before (or instead of) a handler: a hold, a timer, children."""
    pos = decision.pos
    if execution.phase == "join":
        timers.arm_join(decision, execution)
        return
    if (execution.scope, execution.node) not in pos.execs:
        return
    if breakpoints.is_at_breakpoint(decision, execution):
        breakpoints.pause(decision, execution)
    else:
        enter(decision, execution)


def start_exec(decision: Decision, execution: Exec) -> None:
    """Start an execution that was paused before it did anything."""
    node = node_of(decision.graph, decision.pos, execution)
    if node.kind is NodeKind.task or node.kind is NodeKind.guardrail:
        decision.starts.append(execution)
    enter(decision, execution)


def enter(decision: Decision, execution: Exec) -> None:
    """Start the node's work, after its breakpoint if it has one."""
    pos = decision.pos
    node = node_of(decision.graph, pos, execution)
    graph = pos.scope_graph(decision.graph, pos.scopes[execution.scope])
    if lists_checkpoint(pos, graph, node, "before", execution.scope):
        before = decision.draft(
            Kind.attempt,
            AttemptBody("before"),
            node=node.id,
            execution=execution,
            effect=node.effect,
            listed=True,
        )
        pos.head, pos.at = before.seq, before.at
    if node.kind is NodeKind.hold:
        holds.ask_node(decision, execution, node)
    elif node.kind is NodeKind.timer:
        timers.sleep(decision, execution, node)
    elif node.kind in PARENTS:
        fan_out.open_children(decision, execution)


def finish_scopes(decision: Decision, scope: Scope, body: StepBody) -> None:
    """After a step: if its scope is done, its owner settles, or the run ends."""
    pos = decision.pos
    if scope.active or pos.failing is not None or pos.scopes.get(scope.path) is not scope:
        return
    # Nothing runs, but an edge still waits for its join: no message can ever change that, so the run fails
    # now instead of waiting for ever.
    if scope.tokens or scope.open_loops:
        end.fail_run(decision, stall(pos, decision.graph, scope))
        return
    try:
        scope.tree.finish()
    except StateError as clash:
        problem = CannotContinueError(
            "state_mismatch", f"the branches do not merge at the end: {clash.message}", ""
        )
        end.fail_run(decision, problem)
        return
    body.moves.append(("C", scope.path, 0, 0))
    if scope.owner is None:
        # The cancel was acknowledged: handlers that finished in the meantime are settled, but the run ends
        # cancelled.
        if pos.cancelling is None:
            end.end_run(decision, "completed", None)
        return
    owner = pos.execs[scope.owner]
    owner.results[scope.index] = result_of(decision.graph, pos, scope)
    del pos.scopes[scope.path]
    fan_out.go_on_with_owner(decision, owner, body)


def stall(pos: Position, graph: Graph, scope: Scope) -> CannotContinueError:
    inner = pos.scope_graph(graph, scope)
    waiting = sorted(
        {inner.nodes[inner.target[e]].id for e in scope.tokens}
        or {inner.nodes[h].id for h in scope.open_loops}
    )
    return CannotContinueError(
        "stall", f"no node can start, but {', '.join(waiting)} still waits for its incoming edges", waiting[0]
    )
