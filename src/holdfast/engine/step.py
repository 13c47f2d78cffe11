"""`step`: from a run's position, messages and the time to a decision. Pure: no await, clock or store.

The position is advanced in place by exactly the records of the decision; applying those records
(`model.apply`) to a copy of the old position gives the same position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.engine import answers, breakpoints, end, in_doubt, recover, settle, timers
from holdfast.engine.decision import Decision, ValueChecker
from holdfast.engine.messages import (
    BreakpointsSet,
    CancelRequested,
    CodeChanged,
    EvidenceArrived,
    HandlerFinished,
    HandlerLost,
    HandlersStopped,
    HoldAnswered,
    HoldUnanswered,
    Message,
    ResumeRequested,
    RunRecovered,
    SubstepDoubted,
    TimerFired,
)
from holdfast.model.graph import Graph
from holdfast.model.position import Position


def step(
    graph: Graph, pos: Position, inbox: Sequence[Message], now: int, fits: ValueChecker | None = None
) -> Decision:
    decision = Decision(graph, pos, now, fits)
    for message in inbox:
        _HANDLERS[type(message)](decision, message)
    return decision


_HANDLERS: dict[type[Message], Callable[[Decision, Any], None]] = {
    HandlerFinished: settle.on_handler_finished,
    HoldAnswered: answers.on_hold_answered,
    HoldUnanswered: answers.on_hold_unanswered,
    TimerFired: timers.on_timer_fired,
    CancelRequested: end.on_cancel_requested,
    ResumeRequested: recover.on_resume_requested,
    RunRecovered: recover.on_run_recovered,
    HandlersStopped: end.on_handlers_stopped,
    HandlerLost: recover.on_handler_lost,
    SubstepDoubted: in_doubt.on_substep_doubted,
    EvidenceArrived: recover.on_evidence_arrived,
    CodeChanged: answers.on_code_changed,
    BreakpointsSet: breakpoints.on_breakpoints_set,
}
