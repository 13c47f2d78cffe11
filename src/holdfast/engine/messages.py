"""Messages to the engine: the worker's reports on handlers, and messages from the run's inbox."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model.record_bodies import ErrorInfo, Usage
from holdfast.types.memory import Memory
from holdfast.types.record import Op


class HandlerFinished(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A handler ended. `unknown`: the outcome of its effect is not known (D-15)."""

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
    reported: bool = False  # a failure that the handler returned itself, with its update
    retryable: bool = False
    unknown: bool = False
    duration: int = 0
    usage: Usage | None = None
    notes: Any = None
    probe: str | None = None  # what a probe found: "happened" or "not_happened"
    label: str = ""
    suggested: tuple[str, ...] = ()
    gates: dict[str, bool] = {}  # the gates of the branches of a parallel node
    inbox: int = 0
    memories: list[Memory] = []  # journaled writes, to be put in the settle


class HoldAnswered(msgspec.Struct, kw_only=True):
    hold: str
    resolution: Any
    by: str
    at: int
    inbox: int = 0


class HoldUnanswered(msgspec.Struct, kw_only=True):
    """A hold ended without a decision: expired or cancelled. `raises`: the flow gets an error."""

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
    """What a fenced worker reported about a sub-step with an effect."""

    ordinal: str
    name: str
    value: Any
    # Its effect class; empty in reports of older workers: then the node's class applies.
    effect: str = ""


EvidenceBySeq = dict[int, HandlerFinished | SubstepEvidence]
"""Reports of fenced workers about effects, by the seq of their intent (D-17)."""


class ResumeRequested(msgspec.Struct, kw_only=True):
    """Run the failed nodes again; with more breakpoints, or (`off`) without any."""

    inbox: int = 0
    late: EvidenceBySeq = {}
    breaks: list[str] = []
    off: bool = False


class BreakpointsSet(msgspec.Struct, kw_only=True):
    """The breakpoints of a run that resumes: set before any node starts."""

    breaks: list[str] = []
    off: bool = False


class RunRecovered(msgspec.Struct, kw_only=True):
    """A worker has loaded this run. Nodes that may have been running are treated by their effect class."""

    late: EvidenceBySeq = {}


class HandlerLost(msgspec.Struct, kw_only=True):
    """The worker that ran this execution is gone, and the run is not: what it noted is recorded. Treated by
    its effect class, as when a run is loaded; the other executions are not touched."""

    scope: str
    node: int
    visit: int


class EvidenceArrived(msgspec.Struct, kw_only=True):
    """Evidence about an effect, possibly after a person was asked about it."""

    intent: int
    evidence: HandlerFinished | SubstepEvidence | None
    inbox: int = 0


class CodeChanged(msgspec.Struct, kw_only=True):
    """The code of nodes ahead differs from the code that the run was last advanced with (D-34).

    `nodes`: the nodes whose code changed; empty if the old code is not known.
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
    """No handler of a run that fails or is being cancelled runs any more."""


Message = (
    HandlerFinished
    | HoldAnswered
    | HoldUnanswered
    | TimerFired
    | CancelRequested
    | ResumeRequested
    | RunRecovered
    | HandlersStopped
    | HandlerLost
    | SubstepDoubted
    | EvidenceArrived
    | CodeChanged
    | BreakpointsSet
)
