"""A run of a pipeline as a picture: each stage with its state, and the edges that were taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.attractor.stored_source import pipeline_of
from holdfast.drawing import Highlight, NodeOverlay, Picture, State
from holdfast.frontends.dot.document import Link, Pipeline
from holdfast.frontends.dot.lower import DIALECT, edge_ids
from holdfast.model.graph import Graph
from holdfast.reports.pipelines import picture_of_pipeline
from holdfast.reports.run_graph import overlays_by_path, picture_of
from holdfast.runs.history.visits import Visits

_FIRST: Final = (
    State.failed, State.asking, State.running, State.waiting, State.unknown, State.ready, State.done,
)  # fmt: skip
"""If several branches share a stage, the first of these states that occurs is shown."""


def picture_of_run(pipeline: Pipeline, visits: Visits, *, interrupted: bool = False) -> Picture:
    """`interrupted`: no worker has the run, so running stages are shown as interrupted."""
    shown: dict[str, NodeOverlay] = {}
    for path, about in overlays_by_path(visits, interrupted=interrupted).items():
        stage = path.rpartition("/")[2]
        if stage not in shown or _rank(about) < _rank(shown[stage]):
            shown[stage] = about
    return picture_of_pipeline(pipeline, shown, marks=_taken(pipeline, visits))


def picture_of_visits(
    graph: Graph, visits: Visits, *, expand: bool = False, interrupted: bool = False
) -> Picture:
    """The picture of any run; a pipeline is drawn as written, with its branches side by side."""
    if graph.dialect == DIALECT:
        return picture_of_run(pipeline_of(graph.spec), visits, interrupted=interrupted)
    return picture_of(graph, visits, expand=expand, interrupted=interrupted)


def _rank(about: NodeOverlay) -> int:
    return _FIRST.index(about.state) if about.state in _FIRST else len(_FIRST)


def _taken(pipeline: Pipeline, visits: Visits) -> dict[tuple[str, str], Highlight]:
    links, paths = edge_ids(pipeline), {path.rpartition("/")[2]: path for path in visits.nodes}
    found = [links.get(edge.rpartition("/")[2]) for edge in visits.edges]
    found += [link for link in pipeline.links if _crosses(link, pipeline, paths)]
    return {(link.source, link.target): Highlight.taken for link in found if link is not None}


def _crosses(link: Link, pipeline: Pipeline, paths: Mapping[str, str]) -> bool:
    """Edges into and out of a branch are not selected, so none is recorded: they were taken if the stages at
    both ends were visited. `paths`: of the visited stages."""
    if link.source not in paths or link.target not in paths:
        return False
    before, after = paths[link.source], paths[link.target]
    out = before.count("/") > after.count("/") and len(pipeline.outgoing[link.source]) == 1
    return out or after.rpartition("/")[0] == before
