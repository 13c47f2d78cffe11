"""A run as a picture, from its events: its graph with the state of each node, and the taken edges."""

from __future__ import annotations

from holdfast.checkpoint.visit import Visit
from holdfast.drawing import NodeOverlay, Picture, State
from holdfast.model.graph import Graph
from holdfast.reports.graph_marks import STATES, notes, run_overlay_picture
from holdfast.runs.history.visits import NodeSum, Visits
from holdfast.types.human_time import human_duration

_FIRST = ("failed", "asking", "running", "waiting", "ready", "unknown")
"""If several visits are open at once, the first of these states is shown."""


def picture_of(graph: Graph, visits: Visits, *, expand: bool = False, interrupted: bool = False) -> Picture:
    """`interrupted`: no worker has the run, so running nodes are shown as ready to continue."""
    return run_overlay_picture(
        graph, overlays_by_path(visits, interrupted=interrupted), visits.edges, expand=expand
    )


def overlays_by_path(visits: Visits, *, interrupted: bool = False) -> dict[str, NodeOverlay]:
    """The overlay of each visited node, by its path."""
    return {
        path: _node_overlay(path, node, visits, interrupted=interrupted)
        for path, node in visits.nodes.items()
    }


def _node_overlay(path: str, node: NodeSum, visits: Visits, *, interrupted: bool) -> NodeOverlay:
    state = _state(path, node, visits)
    if interrupted and state == "running":
        state = "ready"
    return NodeOverlay(state=STATES.get(state, State.idle), note=_note(path, node, visits, state))


def _state(path: str, node: NodeSum, visits: Visits) -> str:
    """The state of the node itself, or of the nodes inside it."""
    inside = [v.state for v in visits.open.values() if v.path == path or v.path.startswith(f"{path}/")]
    return next((state for state in _FIRST if state in inside), node.state)


def _note(path: str, node: NodeSum, visits: Visits, state: str) -> str:
    parts: list[str] = []
    items = _items(path, visits)
    if items is not None and items.visits > 1:
        parts.append(f"{items.done} of {items.visits}")
    if state in ("abandoned", "stopped"):
        parts.append(state)
    # The duration of a running node is not known yet.
    return ", ".join([*parts, *notes(node.visits, node.retries, 0 if node.open else node.work_us)])


def _items(path: str, visits: Visits) -> NodeSum | None:
    """The counts of the first node inside, which has one visit per item."""
    prefix = f"{path}/"
    return next((node for inner, node in visits.nodes.items() if inner.startswith(prefix)), None)


def waiting_text(visit: Visit, now: int) -> str:
    """What a visit waited for, and for how long."""
    parts: list[str] = []
    for wait in visit.waits:
        if wait.kind == "failed":
            continue  # the run stood still: nothing waited
        spent = human_duration((wait.until or now) - wait.since)
        who = f" ({wait.by})" if wait.by else ""
        kind = {"person": "a person", "message": "a message", "time": "a time", "retry": "a retry"}[wait.kind]
        parts.append(f"{kind} {spent}{who}{'' if wait.until else ' (still waiting)'}")
    return "; ".join(parts)
