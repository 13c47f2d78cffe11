"""A run resumes after a crash, a park or a failure: decides about nodes that had started.

Also for a run that is loaded between two records of one decision: the rest of the decision is made now.

Normally the records of a decision commit together. But a fork may start at any record, and a run with a
damaged record falls back to the last readable one.
"""

from __future__ import annotations

from holdfast.engine import (
    breakpoints,
    end,
    failures,
    fan_out,
    holds,
    in_doubt,
    parallel_join,
    retry,
    settle,
    timers,
)
from holdfast.engine.decision import CannotContinueError, Decision, consume, node_of
from holdfast.engine.messages import (
    EvidenceArrived,
    HandlerFinished,
    HandlerLost,
    ResumeRequested,
    RunRecovered,
    SubstepEvidence,
)
from holdfast.model.apply import apply_record
from holdfast.model.branch_ordinals import has_branches
from holdfast.model.child_scopes import PARENTS
from holdfast.model.graph import Node, NodeKind
from holdfast.model.position import SETTLED, Exec, Position, waits_inside
from holdfast.model.record_bodies import AttemptBody, StepBody
from holdfast.types.record import Kind, Side
from holdfast.types.status import REPEATABLE

OPENED = PARENTS | {NodeKind.hold, NodeKind.timer}
"""Nodes that need something besides a handler."""


def pick_up(decision: Decision) -> None:
    """Open nodes that have started but were not opened; end scopes that have nothing left to do."""
    pos = decision.pos
    for execution in list(pos.execs.values()):
        if (execution.scope, execution.node) in pos.execs:
            _pick_up(decision, execution, node_of(decision.graph, pos, execution))
    _finish_children(decision)
    _end_what_is_over(decision)


def _pick_up(decision: Decision, execution: Exec, node: Node) -> None:
    if SETTLED in execution.subs:
        return
    waits_to_open = execution.phase in ("work", "children") and node.kind in OPENED
    if (
        waits_to_open
        and breakpoints.is_untouched(execution)
        and breakpoints.is_at_breakpoint(decision, execution)
    ):
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
        fan_out.open_children(decision, execution)
    elif execution.items is not None and _is_complete(decision, execution):
        fan_out.complete_parent(decision, execution)
    elif execution.error is not None and not _has_children(decision.pos, execution):
        failures.child_failed(decision, execution, execution.error)


def _is_complete(decision: Decision, execution: Exec) -> bool:
    spec = node_of(decision.graph, decision.pos, execution).parallel
    if spec and parallel_join.is_decided(spec, execution.results):
        return not _has_children(decision.pos, execution)
    return len(execution.results) == len(execution.items or ())


def _has_children(pos: Position, owner: Exec) -> bool:
    return any(scope.owner == (owner.scope, owner.node) for scope in pos.scopes.values())


def _finish_children(decision: Decision) -> None:
    """Items and sub-flows that completed while the run was failing: their owners have not been told."""
    pos = decision.pos
    if pos.cancelling is not None:
        return
    done = [s for s in pos.scopes.values() if not (s.active or s.tokens or s.open_loops)]
    for scope in done:
        owner = None if scope.owner is None else pos.execs.get(scope.owner)
        if owner is None or pos.scopes.get(scope.path) is not scope:
            continue
        node = node_of(decision.graph, pos, owner)
        body = AttemptBody("children")
        record = decision.draft(Kind.attempt, body, node=node.id, execution=owner, effect=node.effect)
        pos.head, pos.at = record.seq, record.at
        settle.finish_scopes(decision, scope, StepBody([], body.moves, 0))


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


def on_resume_requested(decision: Decision, message: ResumeRequested) -> None:
    """A failed run resumes: its failed nodes run again, settled ones do not (G-35, G-36)."""
    pos = decision.pos
    inbox = message.inbox
    broken = [e for e in pos.execs.values() if e.phase in ("failed", "asked", "doubt", "delay", "break")]
    breakpoints.set_breaks(decision, message.breaks, off=message.off)
    if pos.failing is None:
        consume(decision, inbox)
        return
    failed_node = pos.failed_node
    # No node failed but the graph itself (a stall, a limit): a resume cannot change that, so the run fails
    # again with the same reason.
    unrecoverable = pos.failing if not any(e.phase == "failed" for e in broken) else None
    for execution in broken:
        node = node_of(decision.graph, pos, execution)
        body = AttemptBody("resumed")
        side = Side(inbox_done=[inbox]) if inbox else None
        # The first record consumes the row; a second one would consume it twice.
        inbox = 0
        record = decision.draft(
            Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
        )
        record.attempt = execution.attempt + 1
        in_doubt_before = execution.phase == "doubt"
        apply_record(decision.graph, pos, record, body)
        if SETTLED in execution.subs:
            decision.starts.append(execution)
        elif in_doubt_before:
            _recover(decision, execution, node, RunRecovered(late=message.late))
        elif breakpoints.is_at_breakpoint(decision, execution):
            breakpoints.pause(decision, execution)
        elif node.kind is NodeKind.task or node.kind is NodeKind.guardrail:
            decision.starts.append(execution)
        else:
            settle.enter(decision, execution)
    if unrecoverable is not None:
        consume(decision, inbox)
        end.fail_run(decision, CannotContinueError(unrecoverable.code, unrecoverable.message, failed_node))
        return
    on_run_recovered(decision, RunRecovered(late=message.late))


def on_run_recovered(decision: Decision, message: RunRecovered) -> None:
    """Decide about nodes that had started when the last worker lost the run. A failing run starts nothing
    more."""
    pos = decision.pos
    # First: a failure that an enclosing node handles may drop the executions that are looked at below.
    failures.hand_up_left(decision)
    if pos.failing is not None:
        return
    for execution in list(pos.execs.values()):
        # Those were started by an earlier message of this step, such as the resume request itself.
        if execution.phase != "work" or execution in decision.starts:
            continue
        node = node_of(decision.graph, pos, execution)
        if SETTLED in execution.subs:
            decision.starts.append(execution)
            continue
        if node.kind in PARENTS or node.kind in (NodeKind.hold, NodeKind.timer):
            continue
        if breakpoints.is_untouched(execution) and breakpoints.is_at_breakpoint(decision, execution):
            breakpoints.pause(decision, execution)
            continue
        _recover(decision, execution, node, message)
    pick_up(decision)


def on_handler_lost(decision: Decision, message: HandlerLost) -> None:
    """One execution alone: the others have workers of their own."""
    pos = decision.pos
    execution = pos.execs.get((message.scope, message.node))
    if execution is None or execution.visit != message.visit or execution.phase != "work":
        return
    if pos.failing is not None or pos.cancelling is not None:
        return
    if SETTLED in execution.subs:
        decision.starts.append(execution)
        return
    _recover(decision, execution, node_of(decision.graph, pos, execution), RunRecovered())


def _recover(decision: Decision, execution: Exec, node: Node, message: RunRecovered) -> None:
    pos = decision.pos
    late = message.late.get(execution.intent)
    # Evidence before the in-doubt policy: with it, no person has to be asked and nothing is repeated.
    if isinstance(late, HandlerFinished):
        # A worker that lost the run while the handler ran has reported its outcome (D-17).
        settle.on_handler_finished(decision, late)
        return
    for intent in list(execution.step_intents.values()):
        result = message.late.get(intent)
        if isinstance(result, SubstepEvidence):
            in_doubt.record_evidence(decision, execution, result, 0)
    # There is an intent and no outcome: the effect may have happened, so it is never simply run again.
    if execution.intent >= 0 and node.effect not in REPEATABLE and not node.idempotency_key:
        in_doubt.apply_policy(decision, execution, node, None)
    elif in_doubt.next_doubt(decision, execution, node):
        return
    elif waits_inside(pos, execution):
        # One branch of a script may wait while another one was at work: only its code knows that.
        if has_branches(execution.subs):
            decision.starts.append(execution)
    # A new attempt, with a record: readers of the live output see that what follows begins again.
    elif execution.emitted or execution.subs or execution.intent >= 0:
        retry.restart(decision, execution, "restarted")
    else:
        decision.starts.append(execution)


def on_evidence_arrived(decision: Decision, message: EvidenceArrived) -> None:
    """Evidence after a person was asked: the question is resolved by the fenced worker's report (D-17)."""
    result = message.evidence
    for execution in decision.pos.execs.values():
        if (
            isinstance(result, HandlerFinished)
            and execution.intent == message.intent
            and execution.phase == "doubt"
        ):
            result.inbox = message.inbox
            settle.on_handler_finished(decision, result)
            return
        if (
            isinstance(result, SubstepEvidence)
            and execution.step_intents.get(result.ordinal) == message.intent
        ):
            in_doubt.record_evidence(decision, execution, result, message.inbox)
            return
    consume(decision, message.inbox)
