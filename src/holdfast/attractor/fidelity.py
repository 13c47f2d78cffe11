"""How much of the earlier stages a stage's model gets, and which conversation it continues."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.attractor.handler import StageVisit
from holdfast.attractor.stage_history import stages_of
from holdfast.frontends.dot.rules import FIDELITIES

FULL, TRUNCATE, COMPACT = "full", "truncate", "compact"
LOW, MEDIUM, HIGH = "summary:low", "summary:medium", "summary:high"
DEFAULT: Final = COMPACT
RESUMED: Final = "internal.resume_fidelity"
"""In the context of a run that lost its conversations: what replaces `full`, once."""
NOTED: Final = "internal.fidelity"
"""In the context: the fidelity of the last stage that asked a model."""
KEEP: Final = "keep"
_THREADS: Final = ("thread_id", "default_thread_id", "default_thread")


class Fidelity(msgspec.Struct, frozen=True):
    """`thread`: the conversation's key, for `full` only. `degraded`: `full` was requested, but is lost."""

    mode: str
    thread: str = ""
    degraded: bool = False


def fidelity_of(visit: StageVisit) -> Fidelity:
    mode = mode_of(visit)
    if mode != FULL:
        return Fidelity(mode)
    instead = visit.context.get_string(RESUMED)
    if instead in FIDELITIES and instead != FULL:
        return Fidelity(instead, degraded=True)
    return Fidelity(FULL, thread_of(visit))


def mode_of(visit: StageVisit) -> str:
    """The edge, then the stage, then the graph, then `compact`. An unknown mode is ignored."""
    edge = visit.came_by.text("fidelity") if visit.came_by is not None else ""
    modes = (edge, visit.stage.text("fidelity"), visit.pipeline.text("default_fidelity"))
    return next((mode for mode in modes if mode in FIDELITIES), DEFAULT)


def thread_of(visit: StageVisit) -> str:
    """The first of: the stage, the edge, the graph, the enclosing subgraph, the previous stage."""
    named = visit.stage.text("thread_id")
    if not named and visit.came_by is not None:
        named = visit.came_by.text("thread_id")
    graph = [visit.pipeline.text(key) for key in _THREADS]
    named = named or next((name for name in graph if name), "")
    if not named and visit.stage.derived:
        named = visit.stage.derived[-1]
    return named or _before(visit)


def _before(visit: StageVisit) -> str:
    """After a jump there is no edge: the last stage that ended is used."""
    if visit.came_by is not None:
        return visit.came_by.source
    stages = stages_of(visit.context)
    return stages[-1].stage if stages else visit.stage.id


def note(visit: StageVisit, fidelity: Fidelity) -> None:
    """For checkpoints. A degraded hop applies once."""
    noted = {"mode": fidelity.mode, **({"thread": fidelity.thread} if fidelity.thread else {})}
    if visit.context.get(NOTED) != noted:
        visit.context.set(NOTED, noted)
    if visit.context.get_string(RESUMED):
        visit.context.set(RESUMED, "")


def resume_mode(asked: str, graph: str = "") -> str:
    """What replaces `full` for one hop if a run resumes without its conversations: the caller's choice, else
    the graph's (`resume_fidelity`), else the specification's. Empty: it stays."""
    mode = asked or graph or HIGH
    return "" if mode in (KEEP, FULL) or mode not in FIDELITIES else mode
