"""What every picture of a run has in common: states, notes, taken edges."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from holdfast.drawing import Highlight, NodeOverlay, Picture, State, from_graph
from holdfast.model.graph import Edge, Graph
from holdfast.types.human_time import human_duration

STATES: Final[Mapping[str, State]] = {
    "running": State.running,
    "asking": State.asking,
    "waiting": State.waiting,
    "ready": State.ready,
    "done": State.done,
    "failed": State.failed,
    "unknown": State.unknown,
    "skipped": State.skipped,
    "abandoned": State.skipped,
    "stopped": State.skipped,
}


def run_overlay_picture(
    graph: Graph, shown: Mapping[str, NodeOverlay], taken: Collection[str], *, expand: bool
) -> Picture:
    """`shown` and `taken` by place: the path of the graph, then the name of the node or edge."""

    def mark(path: str, edge: Edge) -> Highlight:
        return Highlight.taken if path + edge.id in taken else Highlight.none

    return from_graph(graph, dict(shown), expand=expand, mark=mark)


def notes(visits: int, retries: int, work_us: int) -> list[str]:
    """Short notes on a node over all its visits."""
    parts = [
        f"{visits} visits" if visits > 1 else "",
        f"{retries} {'retry' if retries == 1 else 'retries'}" if retries else "",
        human_duration(work_us) if work_us >= 1_000 else "",
    ]
    return [part for part in parts if part]
