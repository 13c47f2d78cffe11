"""A run's graph as its story leaves it: the state of each node, the edges that were taken."""

from __future__ import annotations

from holdfast.checkpoint.visit import Visit, place_of
from holdfast.drawing import NodeOverlay, Picture, State
from holdfast.model.graph import Graph
from holdfast.reports.graph_marks import STATES, notes, run_overlay_picture
from holdfast.runs.history.story import Story


def story_picture(graph: Graph, story: Story, *, expand: bool = True) -> Picture:
    by_path: dict[str, list[Visit]] = {}
    for visit in story.visits:
        by_path.setdefault(place_of(visit.label), []).append(visit)
    told = {path: _node_overlay(chapters) for path, chapters in by_path.items()}
    for label in story.skipped:
        told.setdefault(place_of(label), NodeOverlay(state=State.skipped))
    taken = {place_of(edge) for visit in story.visits for edge in visit.edges}
    return run_overlay_picture(graph, told, taken, expand=expand)


def _node_overlay(chapters: list[Visit]) -> NodeOverlay:
    last = chapters[-1]
    waits = any(question.status == "pending" for question in last.questions) and last.ended_at is None
    failed = any(visit.halts and not visit.handed_to for visit in chapters)
    state = State.failed if failed else State.asking if waits else _state(last)
    return NodeOverlay(state=state, note=_note(chapters))


def _state(visit: Visit) -> State:
    """A page is read later: what was running when it was written is shown as ready to go on."""
    state = STATES.get(visit.state, State.idle)
    return State.ready if state is State.running else state


def _note(chapters: list[Visit]) -> str:
    retries = sum(trial.reason == "retry" for visit in chapters for trial in visit.trials)
    return ", ".join(notes(len(chapters), retries, sum(visit.duration for visit in chapters)))
