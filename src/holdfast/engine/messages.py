"""What the engine is told. The worker reports on handlers; the inbox brings what others said."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model.record_bodies import ErrorInfo, Usage
from holdfast.types.memory import Memory
from holdfast.types.record import Op


class HandlerFinished(msgspec.Struct, kw_only=True):
    """A handler ended. `unknown`: an effect whose outcome nobody knows (D-15)."""

    scope: str
    node: int
    visit: int
    ops: list[Op] = []
    output: Any = None
    promoted: bool = False
    outcome: str = "success"
    routes: list[int] | None = None
    reroute: str | None = None
    error: ErrorInfo | None = None
    reported: bool = False  # a failure that the handler told itself, with what it changed
    retryable: bool = False
    unknown: bool = False
    duration: int = 0
    usage: Usage | None = None
    notes: Any = None
    probe: str | None = None  # what a probe found: "happened" or "not_happened"
    label: str = ""
    suggested: tuple[str, ...] = ()
    gates: dict[str, bool] = {}  # those that were passed in the branches of a parallel node
    inbox: int = 0
    memories: list[Memory] = []  # journaled writes, to be put in the settle


class HoldAnswered(msgspec.Struct, kw_only=True):
    hold: str
    resolution: Any
    by: str
    at: int
    inbox: int = 0


class HoldUnanswered(msgspec.Struct, kw_only=True):
    """A hold ended without a decision: it expired, or was withdrawn. `raises`: the flow is to know."""

    hold: str
    withdrawn: bool = False
    raises: bool = False
    reason: str = ""
    inbox: int = 0


class TimerFired(msgspec.Struct, kw_only=True):
    token: str
    inbox: int = 0


class CancelRequested(msgspec.Struct, kw_only=True):
    reason: str
    by: str = ""
    inbox: int = 0


class SubstepEvidence(msgspec.Struct, kw_only=True):
    """What a fenced worker told about a sub-step with an effect."""

    ordinal: str
    name: str
    value: Any
    # Its class; empty where a worker told it that did not say: then it is taken to be the node's.
    effect: str = ""


EvidenceBySeq = dict[int, HandlerFinished | SubstepEvidence]
"""What fenced workers told about effects, by the seq of their intent (D-17)."""


class ResumeRequested(msgspec.Struct, kw_only=True):
    """Run the failed nodes again; stop at these places too, or (`off`) nowhere."""

    inbox: int = 0
    late: EvidenceBySeq = {}
    breaks: list[str] = []
    off: bool = False


class BreakpointsSet(msgspec.Struct, kw_only=True):
    """Where a run that goes on is to stop: known before anything of it starts."""

    breaks: list[str] = []
    off: bool = False


class RunRecovered(msgspec.Struct, kw_only=True):
    """A worker has loaded this run. Work that may have been under way is judged by its effect class."""

    late: EvidenceBySeq = {}


class EvidenceArrived(msgspec.Struct, kw_only=True):
    """Evidence about an effect, after its doubt may have been asked."""

    intent: int
    told: HandlerFinished | SubstepEvidence | None
    inbox: int = 0


class CodeChanged(msgspec.Struct, kw_only=True):
    """Code that is ahead of this run is not the one that it was last advanced with (D-34).

    `nodes`: whose code it is; none where nobody knows what it was.
    """

    old: str
    new: str
    nodes: list[str] = []


class SubstepDoubted(msgspec.Struct, kw_only=True):
    """A sub-step with an effect ended in an error: whether it took effect is not known (D-15, D-20)."""

    scope: str
    node: int
    visit: int
    substep: str
    error: ErrorInfo


class HandlersStopped(msgspec.Struct, kw_only=True):
    """All handlers of a run that fails or is being cancelled have come to rest."""


Message = (
    HandlerFinished
    | HoldAnswered
    | HoldUnanswered
    | TimerFired
    | CancelRequested
    | ResumeRequested
    | RunRecovered
    | HandlersStopped
    | SubstepDoubted
    | EvidenceArrived
    | CodeChanged
    | BreakpointsSet
)
