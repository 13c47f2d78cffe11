"""The end of a run: completed, failed or cancelled, once no handler runs any more."""

from __future__ import annotations

from holdfast.engine.decision import CannotContinueError, Decision, node_of
from holdfast.engine.messages import CancelRequested, HandlersStopped
from holdfast.model.apply import apply_record
from holdfast.model.record_bodies import AttemptBody, EndBody, ErrorInfo, StepBody
from holdfast.types.record import Kind, Side
from holdfast.types.status import RunStatus

_CLOSED = {
    "completed": "the run ended",
    "failed": "the run failed",
    "cancelled": "the run was cancelled",
}


def fail_run(decision: Decision, problem: CannotContinueError) -> None:
    """The graph cannot continue (a stall, a limit, an unsatisfied join)."""
    body = AttemptBody("failing", error_of(problem))
    record = decision.draft(Kind.attempt, body, node=problem.node, outcome="fail", listed=True)
    apply_record(decision.graph, decision.pos, record, body)


def error_of(problem: CannotContinueError) -> ErrorInfo:
    kind = "".join(part.title() for part in problem.code.split("_")) + "Error"
    return ErrorInfo(problem.code, kind, problem.message)


def end_run(
    decision: Decision, status: str, error: ErrorInfo | None, *, inbox: list[int] | None = None
) -> None:
    pos = decision.pos
    body = EndBody(status, error, pos.failed_node)
    side = Side(
        status=RunStatus(status),
        error=None if error is None else f"{error.type}: {error.message}",
        # In the record of the end: an answer that was accepted after it could have no effect.
        close_all_holds=_CLOSED[status] if pos.holds else None,
        close_all_timers=bool(pos.timers),
        inbox_done=inbox or [],
    )
    record = decision.draft(Kind.end, body, node=pos.failed_node, outcome=status, listed=True, side=side)
    apply_record(decision.graph, pos, record, body)
    decision.ended = True


def on_handlers_stopped(decision: Decision, _message: HandlersStopped) -> None:
    """No handler runs any more: the run ends as failed or cancelled."""
    pos = decision.pos
    if decision.ended:
        return
    if pos.cancelling is not None:
        # No person is asked: the run is over, and the record says what has to be checked by hand.
        _mark_unknown(decision)
        reason = ErrorInfo("run_cancelled", "RunCancelledError", pos.cancelling)
        inbox, pos.cancel_rows = pos.cancel_rows, []
        end_run(decision, "cancelled", reason, inbox=inbox)
    elif pos.failing is not None:
        end_run(decision, "failed", pos.failing)


def _mark_unknown(decision: Decision) -> None:
    """Open effects of a cancelled run: their outcome is unknown, and is recorded so (D-32)."""
    for execution in list(decision.pos.execs.values()):
        if execution.intent < 0 and not execution.step_intents:
            continue
        node = node_of(decision.graph, decision.pos, execution)
        error = ErrorInfo(
            "outcome_unknown", "OutcomeUnknownError", "the run was cancelled while this was running"
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


def on_cancel_requested(decision: Decision, message: CancelRequested) -> None:
    cancel_run(decision, message.reason, message.inbox)


def cancel_run(decision: Decision, reason: str, inbox: int) -> None:
    """From here on nothing starts; the worker stops the handlers and sends `HandlersStopped`."""
    # No record: the row stays in the inbox until the run has ended, so a crash before that finds it again.
    decision.pos.cancelling = reason
    if inbox:
        decision.pos.cancel_rows.append(inbox)
    # Started by an earlier message of the same step: no handler of them was called yet.
    decision.starts = []
