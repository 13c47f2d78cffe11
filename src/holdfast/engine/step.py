"""`step`: where a run stands, what came in, and the time give the decision. Pure: no await, clock or store.

The position is advanced in place by exactly the records that the decision holds; a reader who applies
those records (`model.apply`) to a copy of the old position arrives at the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.engine import (
    answers,
    breakpoints,
    end,
    recover,
    settle,
    timers,
    unknown_outcomes,
)
from holdfast.engine.decision import Decision, Fits
from holdfast.engine.messages import (
    Answered,
    BreaksSet,
    CancelAsked,
    CodeChanged,
    Doubted,
    Finished,
    Lapsed,
    LateCame,
    Message,
    Recovered,
    ResumeAsked,
    Stopped,
    TimerFired,
)
from holdfast.model.graph import Graph
from holdfast.model.position import Position


def step(
    graph: Graph, pos: Position, inbox: Sequence[Message], now: int, fits: Fits | None = None
) -> Decision:
    decision = Decision(graph, pos, now, fits)
    for message in inbox:
        _HANDLERS[type(message)](decision, message)
    return decision


_HANDLERS: dict[type[Message], Callable[[Decision, Any], None]] = {
    Finished: settle.finished,
    Answered: answers.answered,
    Lapsed: answers.lapsed,
    TimerFired: timers.timer_fired,
    CancelAsked: end.cancel_asked,
    ResumeAsked: recover.resume_asked,
    Recovered: recover.recovered,
    Stopped: end.stopped,
    Doubted: unknown_outcomes.doubted,
    LateCame: recover.late_came,
    CodeChanged: answers.code_changed,
    BreaksSet: breakpoints.breaks_set,
}
