"""Failure, doubt, cancel, resume, recovery, and the end of a run."""

from __future__ import annotations

from holdfast.engine import asking, pickup, settling
from holdfast.engine.dataflow import Problem
from holdfast.engine.decision import Decision, node_of, side_of
from holdfast.engine.messages import (
    CancelAsked,
    Doubted,
    Finished,
    LateCame,
    Proven,
    Recovered,
    ResumeAsked,
    Stopped,
)
from holdfast.engine.retry import wait_before
from holdfast.engine.walk import takes_failure
from holdfast.model.apply import apply_record, forgive
from holdfast.model.bodies import AttemptBody, EndBody, ErrorInfo, StepBody
from holdfast.model.graph import Graph, InDoubt, Node, NodeKind
from holdfast.model.position import PARENTS, SETTLED, Exec, Scope, failed_item, wipe_scope
from holdfast.types.record import Kind, NewTimer, Record, Side
from holdfast.types.status import REPEATABLE, RunStatus


def failed(decision: Decision, execution: Exec, message: Finished) -> None:
    """An attempt ended badly: try again, ask, or give up (D-15)."""
    node = node_of(decision.graph, decision.pos, execution)
    assert message.error is not None
    if message.unknown and not node.idempotency_key:
        _in_doubt(decision, execution, node, message.error)
    elif message.retryable and execution.failures + 1 < node.retry.attempts:
        _retry(decision, execution, node, message.error, message.inbox)
    else:
        give_up(decision, execution, message.error, message=message)


def _retry(decision: Decision, execution: Exec, node: Node, error: ErrorInfo, inbox: int) -> None:
    failures = execution.failures + 1
    pause = wait_before(node.retry, failures, decision.pos.run, execution.scope, node.id, execution.visit)
    wake = decision.now + pause
    token = f"retry:{execution.scope}{node.id}.{execution.visit}.{failures}"
    body = AttemptBody("retry", error, wake, token)
    side = Side(timers=[NewTimer(token, wake)], inbox_done=[inbox] if inbox else [])
    asking.close_holds(decision.pos, execution, side, "superseded")
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, outcome="retry", side=side
    )
    record.attempt = execution.attempt + 1
    apply_record(decision.graph, decision.pos, record, body)


def _in_doubt(decision: Decision, execution: Exec, node: Node, error: ErrorInfo | None) -> None:
    policy = node.in_doubt or decision.graph.spec.in_doubt
    if policy is InDoubt.retry:
        restart(decision, execution, "in_doubt")
    elif policy is InDoubt.fail:
        give_up(decision, execution, error or _unknown(f"node {node.id!r}"))
    elif policy is InDoubt.probe:
        decision.probes.append(execution)
    else:
        asking.ask_doubt(decision, execution, error)


def probed(decision: Decision, execution: Exec, message: Finished) -> None:
    """The node's probe has looked: the effect happened, or it did not, or not even the probe knows."""
    if message.probe == "happened":
        settling.settle(decision, execution, message)
    elif message.probe == "not_happened":
        restart(decision, execution, "in_doubt")
    else:
        asking.ask_doubt(decision, execution, message.error)


def doubted(decision: Decision, message: Doubted) -> None:
    """The same policy as for a node, for one sub-step of it."""
    execution = decision.pos.execs.get((message.scope, message.node))
    if execution is None or execution.visit != message.visit:
        return
    node = node_of(decision.graph, decision.pos, execution)
    _step_in_doubt(decision, execution, node, message.substep, message.error)


def _step_in_doubt(
    decision: Decision, execution: Exec, node: Node, substep: str, error: ErrorInfo | None
) -> None:
    policy = node.in_doubt or decision.graph.spec.in_doubt
    if policy is InDoubt.retry:
        restart(decision, execution, "in_doubt")
    elif policy is InDoubt.fail:
        name = execution.step_names.get(substep, substep)
        give_up(decision, execution, error or _unknown(f"step {name!r} of node {node.id!r}"))
    else:
        asking.ask_doubt(decision, execution, error, substep=substep)


def _unknown(what: str) -> ErrorInfo:
    return ErrorInfo(
        "outcome_unknown", "OutcomeUnknownError", f"{what} started, and how it ended is not known"
    )


def next_doubt(decision: Decision, execution: Exec, node: Node) -> bool:
    """Several sub-steps may have been under way at once: their doubts are settled one after the other."""
    for substep in execution.step_intents:
        _step_in_doubt(decision, execution, node, substep, None)
        return True
    return False


def restart(decision: Decision, execution: Exec, reason: str, *, inbox: int = 0) -> None:
    """The node runs again. Only `retry` counts against its attempts; a crash or a wait does not."""
    pos = decision.pos
    node = node_of(decision.graph, pos, execution)
    body = AttemptBody(reason)
    side = Side(inbox_done=[inbox] if inbox else [])
    if execution.token:
        side.close_timers.append(execution.token)
    asking.close_holds(pos, execution, side, "superseded")
    open_side = side if side.inbox_done or side.close_timers or side.close_holds else None
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=open_side
    )
    if reason != "woke":
        record.attempt = execution.attempt + 1
    apply_record(decision.graph, pos, record, body)
    if node.kind in PARENTS:
        settling.open_exec(decision, execution)
    else:
        decision.starts.append(execution)


def give_up(
    decision: Decision, execution: Exec, error: ErrorInfo, *, message: Finished | None = None, inbox: int = 0
) -> None:
    """No attempt is left. What follows is the node's `on_failure`."""
    pos = decision.pos
    scope = pos.scopes[execution.scope]
    graph = pos.scope_graph(decision.graph, scope)
    node = graph.nodes[execution.node]
    ended = message or Finished(
        scope=execution.scope, node=execution.node, visit=execution.visit, inbox=inbox
    )
    ended.error = error
    ended.ops = []
    if node.on_failure == "skip":
        ended.outcome = "skipped"
        settling.settle(decision, execution, ended)
    elif node.on_failure.startswith("route:") or (graph.walk and _walks_on(graph, scope, execution, ended)):
        ended.outcome = "fail"
        settling.settle(decision, execution, ended, failed=not graph.walk)
    else:
        _abort(decision, scope, execution, node, ended)


def _walks_on(graph: Graph, scope: Scope, execution: Exec, ended: Finished) -> bool:
    ended.outcome = "fail"
    return takes_failure(graph, scope, execution, ended)


def _abort(decision: Decision, scope: Scope, execution: Exec, node: Node, ended: Finished) -> None:
    owner = _owner_that_copes(decision, scope)
    assert ended.error is not None
    side = Side(inbox_done=[ended.inbox] if ended.inbox else [])
    asking.close_holds(decision.pos, execution, side, "the node failed")
    if execution.token:
        side.close_timers.append(execution.token)
    body = StepBody([], [], ended.duration, None, False, ended.usage, ended.error, ended.notes, halts=True)
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
    """The nearest map or sub-flow around this scope that does something else than abort."""
    pos = decision.pos
    while scope.owner is not None:
        owner = pos.execs[scope.owner]
        node = node_of(decision.graph, pos, owner)
        collects = node.map is not None and node.map.on_item_failure == "collect"
        if collects or node.on_failure != "abort" or node.retry.attempts > 1:
            return owner
        scope = pos.scopes[scope.owner[0]]
    return None


def _hand_up(decision: Decision, scope: Scope, owner: Exec, error: ErrorInfo) -> None:
    """The child's failure becomes its owner's affair; the rest of the child is dropped."""
    pos = decision.pos
    child = _child_below(decision, scope, owner)
    node = node_of(decision.graph, pos, owner)
    collects = node.map is not None and node.map.on_item_failure == "collect"
    body = AttemptBody("child_failed", error)
    record = decision.draft(Kind.attempt, body, node=node.id, execution=owner, effect=node.effect)
    pos.head, pos.at = record.seq, record.at
    # Where the owner itself fails or tries again, its other children are of no use any more.
    for gone in [child] if collects else [s for s in pos.scopes.values() if s.owner == child.owner]:
        wipe(decision, gone, record, body)
    forgive(decision.graph, pos, owner, error)
    if collects:
        owner.results[child.index] = failed_item(error)
        collected = StepBody([], body.moves, 0)
        settling.go_on_with_owner(decision, owner, collected)
        return
    child_failed(decision, owner, error)


def child_failed(decision: Decision, owner: Exec, error: ErrorInfo) -> None:
    """A map or sub-flow fails by its child: it tries again or gives up, as any node."""
    retryable = node_of(decision.graph, decision.pos, owner).retry.attempts > 1
    finished = Finished(
        scope=owner.scope, node=owner.node, visit=owner.visit, error=error, retryable=retryable
    )
    failed(decision, owner, finished)


def _child_below(decision: Decision, scope: Scope, owner: Exec) -> Scope:
    while scope.owner != (owner.scope, owner.node):
        assert scope.owner is not None
        scope = decision.pos.scopes[scope.owner[0]]
    return scope


def hand_up_left(decision: Decision) -> None:
    """Failures that were recorded and not yet handed to the owners that cope with them."""
    pos = decision.pos
    for execution in [e for e in pos.execs.values() if e.phase == "failed"]:
        scope = pos.scopes.get(execution.scope)
        owner = _owner_that_copes(decision, scope) if scope is not None else None
        if scope is not None and owner is not None and execution.error is not None:
            _hand_up(decision, scope, owner, execution.error)


def wipe(decision: Decision, scope: Scope, record: Record, body: AttemptBody) -> None:
    """Drop a scope with everything in it: what is under way is cancelled, what waits is closed."""
    dropped = [e for e in decision.pos.execs.values() if e.scope.startswith(scope.path)]
    decision.cancels += dropped
    for execution in dropped:
        if execution.token:
            side_of(record).close_timers.append(execution.token)
        if decision.pos.holds:
            asking.close_holds(decision.pos, execution, side_of(record), "the branch was dropped")
    decision.starts = [s for s in decision.starts if not s.scope.startswith(scope.path)]
    owner = scope.owner
    assert owner is not None
    body.moves.append(("W", owner[0], owner[1], scope.index))
    around = decision.pos.scopes[owner[0]]
    wipe_scope(decision.pos.scope_graph(decision.graph, around), decision.pos, around, owner[1], scope.index)


def fail_run(decision: Decision, problem: Problem) -> None:
    """The graph itself cannot go on (a stall, a limit, an unsatisfied join)."""
    kind = "".join(part.title() for part in problem.code.split("_")) + "Error"
    error = ErrorInfo(problem.code, kind, problem.message)
    body = AttemptBody("failing", error)
    record = decision.draft(Kind.attempt, body, node=problem.node, outcome="fail", listed=True)
    apply_record(decision.graph, decision.pos, record, body)


def end_run(
    decision: Decision, status: str, error: ErrorInfo | None, *, inbox: list[int] | None = None
) -> None:
    pos = decision.pos
    body = EndBody(status, error, pos.failed_node)
    side = Side(
        status=RunStatus(status),
        error=None if error is None else f"{error.type}: {error.message}",
        close_all_holds=f"the run {status}" if status != "completed" else "the run ended",
        close_all_timers=True,
        inbox_done=inbox or [],
    )
    record = decision.draft(Kind.end, body, node=pos.failed_node, outcome=status, listed=True, side=side)
    apply_record(decision.graph, pos, record, body)
    decision.ended = True


def stopped(decision: Decision, _message: Stopped) -> None:
    """Every handler has come to rest: the run ends as it must."""
    pos = decision.pos
    if decision.ended:
        return
    if pos.cancelling is not None:
        _mark_unknown(decision)
        reason = ErrorInfo("run_cancelled", "RunCancelledError", pos.cancelling)
        inbox, pos.cancel_rows = pos.cancel_rows, []
        end_run(decision, "cancelled", reason, inbox=inbox)
    elif pos.failing is not None:
        end_run(decision, "failed", pos.failing)


def _mark_unknown(decision: Decision) -> None:
    """Open effects of a cancelled run: nobody knows how they ended, and the history says so (D-32)."""
    for execution in list(decision.pos.execs.values()):
        if execution.intent < 0 and not execution.step_intents:
            continue
        node = node_of(decision.graph, decision.pos, execution)
        error = ErrorInfo(
            "outcome_unknown", "OutcomeUnknownError", "the run was cancelled while this was under way"
        )
        body = StepBody([], [], 0, error=error)
        record = decision.draft(
            Kind.step,
            body,
            node=node.id,
            execution=execution,
            effect=node.effect,
            outcome="unknown",
            listed=True,
        )
        apply_record(decision.graph, decision.pos, record, body)


def cancel_asked(decision: Decision, message: CancelAsked) -> None:
    cancel_run(decision, message.reason, message.inbox)


def cancel_run(decision: Decision, reason: str, inbox: int) -> None:
    """From here on nothing starts; the worker stops what runs and says `Stopped`."""
    decision.pos.cancelling = reason
    if inbox:
        decision.pos.cancel_rows.append(inbox)
    decision.starts = []


def resume_asked(decision: Decision, message: ResumeAsked) -> None:
    """A failed run goes on: its failed nodes run again, nothing that settled does (G-35, G-36)."""
    pos = decision.pos
    inbox = message.inbox
    broken = [e for e in pos.execs.values() if e.phase in ("failed", "asked", "doubt", "delay")]
    if pos.failing is None:
        asking.consume(decision, inbox)
        return
    failed_node = pos.failed_node
    unmendable = pos.failing if not any(e.phase == "failed" for e in broken) else None
    for execution in broken:
        node = node_of(decision.graph, pos, execution)
        body = AttemptBody("resumed")
        side = Side(inbox_done=[inbox]) if inbox else None
        inbox = 0
        record = decision.draft(
            Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
        )
        record.attempt = execution.attempt + 1
        apply_record(decision.graph, pos, record, body)
        if node.kind is NodeKind.task or node.kind is NodeKind.guardrail or SETTLED in execution.subs:
            decision.starts.append(execution)
        else:
            settling.open_exec(decision, execution)
    if unmendable is not None:
        asking.consume(decision, inbox)
        fail_run(decision, Problem(unmendable.code, unmendable.message, failed_node))
        return
    recovered(decision, Recovered(late=message.late))


def recovered(decision: Decision, message: Recovered) -> None:
    """Judge what was under way when the last worker let go of the run. One that fails starts nothing more."""
    pos = decision.pos
    hand_up_left(decision)
    if pos.failing is not None:
        return
    for execution in list(pos.execs.values()):
        if execution.phase != "work" or execution in decision.starts:
            continue
        node = node_of(decision.graph, pos, execution)
        if SETTLED in execution.subs:
            decision.starts.append(execution)
            continue
        if node.kind in PARENTS or node.kind in (NodeKind.hold, NodeKind.timer):
            continue
        _recover(decision, execution, node, message)
    pickup.pick_up(decision)


def late_came(decision: Decision, message: LateCame) -> None:
    """Evidence after the doubt was asked: it is resolved by what the fenced worker told (D-17)."""
    told = message.told
    for execution in decision.pos.execs.values():
        if isinstance(told, Finished) and execution.intent == message.intent and execution.phase == "doubt":
            told.inbox = message.inbox
            settling.finished(decision, told)
            return
        if isinstance(told, Proven) and execution.step_intents.get(told.ordinal) == message.intent:
            asking.proven(decision, execution, told, message.inbox)
            return
    asking.consume(decision, message.inbox)


def _recover(decision: Decision, execution: Exec, node: Node, message: Recovered) -> None:
    pos = decision.pos
    late = message.late.get(execution.intent)
    if isinstance(late, Finished):
        # A worker that lost the run while the handler ran has told how it ended (D-17).
        settling.finished(decision, late)
        return
    for intent in list(execution.step_intents.values()):
        told = message.late.get(intent)
        if isinstance(told, Proven):
            asking.proven(decision, execution, told, 0)
    if execution.intent >= 0 and node.effect not in REPEATABLE and not node.idempotency_key:
        _in_doubt(decision, execution, node, None)
    elif next_doubt(decision, execution, node) or any(
        not sub.done and sub.hold in pos.holds for sub in execution.subs.values()
    ):
        return
    elif execution.emitted or execution.subs or execution.intent >= 0:
        restart(decision, execution, "restarted")
    else:
        decision.starts.append(execution)
