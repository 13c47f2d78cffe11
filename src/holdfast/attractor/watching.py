"""A run of a pipeline as a picture: each stage with its state, and the edges that were taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.drawing import Mark, Picture, State, Told
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.lower import edge_ids
from holdfast.reports.pipelines import picture_of_pipeline
from holdfast.reports.seen import told_by_path
from holdfast.runs.visits import Visits

_FIRST: Final = (
    State.failed, State.asking, State.running, State.waiting, State.unknown, State.ready, State.done,
)  # fmt: skip
"""Of a stage that several branches go through: what a reader wants to know first."""


def picture_of_run(pipeline: Pipeline, visits: Visits, *, interrupted: bool = False) -> Picture:
    """`interrupted`: nobody has the run, so what was running is only ready to go on."""
    told: dict[str, Told] = {}
    for path, about in told_by_path(visits, interrupted=interrupted).items():
        stage = path.rpartition("/")[2]
        if stage not in told or _rank(about) < _rank(told[stage]):
            told[stage] = about
    return picture_of_pipeline(pipeline, told, marks=_taken(pipeline, visits.edges))


def _rank(about: Told) -> int:
    return _FIRST.index(about.state) if about.state in _FIRST else len(_FIRST)


def _taken(pipeline: Pipeline, edges: Mapping[str, int]) -> dict[tuple[str, str], Mark]:
    links = edge_ids(pipeline)
    found = (links.get(edge.rpartition("/")[2]) for edge in edges)
    return {(link.source, link.target): Mark.taken for link in found if link is not None}
