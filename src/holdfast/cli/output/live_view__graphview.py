"""The live view of a pipeline: its graph, drawn anew whenever a stage has come further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.attractor.picture import picture_of_run
from holdfast.attractor.stored_source import pipeline_of
from holdfast.cli.output.live_view import LiveView
from holdfast.cli.output.screen import coloured
from holdfast.drawing import Picture, TextDrawing, to_text
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.fingerprint import dialect_of
from holdfast.runs.events import reader_of
from holdfast.runs.service import RunService
from holdfast.store.protocols import RunRow

if TYPE_CHECKING:
    from rich.console import Group

BELOW = 3
"""Lines for what is under way."""
AROUND = 4
"""Of the head, the foot, and the space about the drawing."""


class GraphView(LiveView):
    """What does not fit is told as a list, as of every other run."""

    def __init__(self, row: RunRow, pipeline: Pipeline) -> None:
        super().__init__(row)
        self._pipeline = pipeline
        self._known: tuple[Picture, int, int] | None = None
        self._drawing: TextDrawing | None = None

    def drawn(self, now: int, width: int, height: int) -> Group:
        from rich.console import Group

        room = height - AROUND - BELOW
        drawing = self._graph(width, room)
        if len(drawing.lines) > room:
            return super().drawn(now, width, height)
        under_way = [line for visit in self.visits.open.values() for line in self._visit(visit, now, width)]
        graph = [coloured(line) for line in drawing.lines]
        return Group(self._head(now), "", *graph, "", *under_way[:BELOW], self._foot())

    def _graph(self, width: int, height: int) -> TextDrawing:
        picture = picture_of_run(self._pipeline, self.visits, interrupted=self._status == "resumable")
        if self._drawing is None or self._known != (picture, width, height):
            self._known = (picture, width, height)
            self._drawing = to_text(picture, width=width, height=height, ascii_only=self._plain, legend=False)
        return self._drawing


async def view_of(service: RunService, row: RunRow) -> LiveView:
    """A pipeline is drawn; of every other run the visits are listed."""
    if dialect_of(row.version) != DIALECT:
        return LiveView(row)
    return GraphView(row, pipeline_of((await reader_of(service, row)).graph.spec))
