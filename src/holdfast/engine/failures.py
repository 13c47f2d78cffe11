"""An attempt failed: the node is retried or fails, and its failure is passed to the owner that handles it."""

from __future__ import annotations

from holdfast.engine import end, fan_out, holds, in_doubt, retry, settle
from holdfast.engine.dataflow_mode import give_up_effects
from holdfast.engine.decision import CannotContinueError, Decision, node_of, side_of
from holdfast.engine.messages import HandlerFinished
from holdfast.engine.walk_mode import takes_failure
from holdfast.engine.walk_state import with_walk_fields
from holdfast.model.apply import apply_record, forgive
from holdfast.model.child_scopes import collects, result_of, wipe_scope, with_tolerance
from holdfast.model.graph import Graph, Node
from holdfast.model.position import Exec, Scope, naps_of
from holdfast.model.record_bodies import (
    HALTED,
    PARTIAL_ACCEPTED,
    RETRIES_EXCEEDED,
    RETRY_ASKED,
    AttemptBody,
    ErrorInfo,
    StepBody,
)
from holdfast.types.outcome import FAIL
from holdfast.types.record import Kind, Op, Record, Side
from holdfast.types.value import FrozenDict


def on_attempt_failed(decision: Decision, execution: Exec, message: HandlerFinished) -> None:
    """An attempt failed: retry, ask a person, or give up (D-15)."""
    node = node_of(decision.graph, decision.pos, execution)
    assert message.error is not None
    # With a key the other side recognises a repetition, so an attempt with an unknown outcome may be retried.
    if message.unknown and not node.idempotency_key:
        in_doubt.apply_policy(decision, execution, node, message.error)
    elif message.retryable and execution.failures + 1 < node.retry.attempts:
        retry.schedule_retry(decision, execution, node, message.error, message.inbox)
    elif message.error.code == RETRY_ASKED:
        _used_up(decision, execution, node, message)
    else:
        give_up(decision, execution, message.error, message=message)


def _used_up(decision: Decision, execution: Exec, node: Node, message: HandlerFinished) -> None:
    """It asked for a retry, but no attempt is left."""
    if node.walk is not None and node.walk.allow_partial and not node.is_gate:
        message.error, message.outcome = None, "partial_success"
        message.notes = FrozenDict({"notes": PARTIAL_ACCEPTED})
        settle.settle(decision, execution, message)
        return
    asked = message.error.message if message.error is not None else ""
    error = ErrorInfo("node_failed", "NodeFailedError", RETRIES_EXCEEDED, asked)
    give_up(decision, execution, error, message=message)


def give_up(
    decision: Decision,
    execution: Exec,
    error: ErrorInfo,
    *,
    message: HandlerFinished | None = None,
    inbox: int = 0,
) -> None:
    """No attempt is left. What follows is the node's `on_failure`."""
    pos = decision.pos
    scope = pos.scopes[execution.scope]
    graph = pos.scope_graph(decision.graph, scope)
    node = graph.nodes[execution.node]
    ended = message or HandlerFinished(
        scope=execution.scope, node=execution.node, visit=execution.visit, inbox=inbox
    )
    ended.error = error
    # The handler raised, so it returned no update. One that reports its failure itself may have one.
    if not ended.reported:
        ended.ops = []
    if node.on_failure == "skip":
        ended.outcome = "skipped"
        settle.settle(decision, execution, ended)
    elif error.code == HALTED:
        ended.outcome = "fail"
        _abort(decision, scope, execution, node, ended)
    elif node.on_failure.startswith("route:") or (
        graph.walk and _walks_on(decision, graph, scope, execution, ended)
    ):
        ended.outcome = "fail"
        if node.error_as:
            ended.ops = _with_error(ended.ops, node.error_as, node, error)
        settle.settle(decision, execution, ended, failed=not graph.walk)
    else:
        _abort(decision, scope, execution, node, ended)


def _with_error(ops: list[Op], field: str, node: Node, error: ErrorInfo) -> list[Op]:
    """Applying it twice gives the same: a replay begins with the changes as they were recorded."""
    about = {"node": node.id, "code": error.code, "type": error.type, "message": error.message}
    return [*(op for op in ops if op[:2] != ("scratch", field)), ("scratch", field, "set", about)]


def _walks_on(
    decision: Decision, graph: Graph, scope: Scope, execution: Exec, ended: HandlerFinished
) -> bool:
    ended.outcome = "fail"
    return takes_failure(decision, graph, scope, execution, ended)


def _abort(decision: Decision, scope: Scope, execution: Exec, node: Node, ended: HandlerFinished) -> None:
    owner = _owner_that_copes(decision, scope)
    assert ended.error is not None
    if scope.owner is not None:
        map_ = decision.pos.execs[scope.owner]
        ended.error = with_tolerance(node_of(decision.graph, decision.pos, map_), map_, ended.error)
    graph = decision.pos.scope_graph(decision.graph, scope)
    if graph.spec.mirrors:
        # Its label is not used any more, and the record does not have it for a replay.
        ended.outcome, ended.label = FAIL, ""
        ended.ops = with_walk_fields(graph, scope, execution, ended)
    side = Side(inbox_done=[ended.inbox] if ended.inbox else [])
    holds.close_holds(decision.pos, execution, side, "the node failed")
    side.close_timers += [t for t in (execution.token, *naps_of(decision.pos, execution)) if t]
    body = StepBody(
        ended.ops, [], ended.duration, None, False, ended.usage, ended.error, ended.notes, halts=True
    )
    record = decision.draft(
        Kind.step,
        body,
        node=node.id,
        execution=execution,
        effect=node.effect,
        outcome="fail",
        listed=True,
        side=side if side.inbox_done or side.close_holds or side.close_timers else None,
    )
    apply_record(decision.graph, decision.pos, record, body)
    if owner is not None:
        _hand_up(decision, scope, owner, ended.error)


def _owner_that_copes(decision: Decision, scope: Scope) -> Exec | None:
    """The nearest enclosing map or sub-flow whose `on_failure` is not abort."""
    pos = decision.pos
    while scope.owner is not None:
        owner = pos.execs[scope.owner]
        node = node_of(decision.graph, pos, owner)
        # A retry of the owner handles the failure as well: all its children start again.
        if collects(node, owner) or node.on_failure != "abort" or node.retry.attempts > 1:
            return owner
        scope = pos.scopes[scope.owner[0]]
    return None


def _hand_up(decision: Decision, scope: Scope, owner: Exec, error: ErrorInfo) -> None:
    """The owner handles the child's failure; the rest of the child is dropped."""
    pos = decision.pos
    child = _child_below(decision, scope, owner)
    node = node_of(decision.graph, pos, owner)
    collected = result_of(decision.graph, pos, child, error) if collects(node, owner) else None
    body = AttemptBody("child_failed", error)
    record = decision.draft(Kind.attempt, body, node=node.id, execution=owner, effect=node.effect)
    pos.head, pos.at = record.seq, record.at
    # If the owner itself fails or retries, its other children are no longer needed.
    for gone in (
        [child] if collected is not None else [s for s in pos.scopes.values() if s.owner == child.owner]
    ):
        wipe(decision, gone, record, body)
    forgive(decision.graph, pos, owner, error)
    if collected is not None:
        owner.results[child.index] = collected
        fan_out.go_on_with_owner(decision, owner, StepBody([], body.moves, 0))
        return
    child_failed(decision, owner, error)


def fail_scope(decision: Decision, scope: Scope, problem: CannotContinueError) -> None:
    """The graph cannot continue in this scope: the branch fails if it is one, else the run."""
    owner = _owner_that_copes(decision, scope)
    if owner is None or not node_of(decision.graph, decision.pos, owner).parallel:
        end.fail_run(decision, problem)
        return
    _hand_up(decision, scope, owner, end.error_of(problem))


def child_failed(decision: Decision, owner: Exec, error: ErrorInfo) -> None:
    """A map or sub-flow fails because of its child: it retries or gives up, as any node."""
    retryable = node_of(decision.graph, decision.pos, owner).retry.attempts > 1
    finished = HandlerFinished(
        scope=owner.scope, node=owner.node, visit=owner.visit, error=error, retryable=retryable
    )
    on_attempt_failed(decision, owner, finished)


def _child_below(decision: Decision, scope: Scope, owner: Exec) -> Scope:
    while scope.owner != (owner.scope, owner.node):
        assert scope.owner is not None
        scope = decision.pos.scopes[scope.owner[0]]
    return scope


def hand_up_left(decision: Decision) -> None:
    """Pass on failures that were recorded and not yet passed to the owners that handle them."""
    pos = decision.pos
    for execution in [e for e in pos.execs.values() if e.phase == "failed"]:
        scope = pos.scopes.get(execution.scope)
        owner = _owner_that_copes(decision, scope) if scope is not None else None
        if scope is not None and owner is not None and execution.error is not None:
            _hand_up(decision, scope, owner, execution.error)


def wipe(
    decision: Decision, scope: Scope, record: Record, body: AttemptBody | StepBody, move: str = "W"
) -> None:
    """Drop a scope with everything in it: running handlers are cancelled, waits are closed."""
    dropped = [e for e in decision.pos.execs.values() if e.scope.startswith(scope.path)]
    decision.cancels += dropped
    for execution in dropped:
        tokens = [token for token in (execution.token, *naps_of(decision.pos, execution)) if token]
        if tokens:
            side_of(record).close_timers += tokens
        if decision.pos.holds:
            holds.close_holds(decision.pos, execution, side_of(record), "the branch was dropped")
    # Earlier messages of the same step may have started them: their handlers must not be called.
    decision.starts = [s for s in decision.starts if not s.scope.startswith(scope.path)]
    # Their handlers are cancelled, but what they began outside may have happened: it is recorded as unknown.
    give_up_effects(decision, dropped, body.moves)
    owner = scope.owner
    assert owner is not None
    body.moves.append((move, owner[0], owner[1], scope.index))
    around = decision.pos.scopes[owner[0]]
    wipe_scope(decision.pos.scope_graph(decision.graph, around), decision.pos, around, owner[1], scope.index)
