"""What the live view shows: the visits of a run as they come, what is under way, what it costs.

The live view of a pipeline: its graph, drawn anew whenever a stage has come further.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.attractor.picture import picture_of_run
from holdfast.attractor.stored_source import pipeline_of
from holdfast.checkpoint.visit import Visit
from holdfast.cli.output.console import clean_text, coloured, is_plain, style_of
from holdfast.cli.output.timeline import money
from holdfast.drawing import Picture, TextDrawing, to_text
from holdfast.drawing.picture import State
from holdfast.drawing.state_signs import ASCII_SIGNS, SIGNS, shortened
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.fingerprint import dialect_of
from holdfast.model.graph import Graph
from holdfast.model.shown_names import shown_name
from holdfast.runs.events import reader_of
from holdfast.runs.history.visits import Visits, apply_event
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.event import Event
from holdfast.types.human_time import human_duration
from holdfast.types.status import label_for

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text


KEPT = 200
_SPINNER = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")
_SIGNS = {
    "running": State.running,
    "asking": State.asking,
    "waiting": State.waiting,
    "ready": State.ready,
    "done": State.done,
    "failed": State.failed,
    "unknown": State.unknown,
    "abandoned": State.skipped,
    "stopped": State.skipped,
}


class LiveView:
    def __init__(self, row: RunRow, graph: Graph | None = None) -> None:
        self._row, self._names = row, graph
        self._status = "running"
        self._ended_at: int | None = None
        # Asked once: while the view is live, stdout is not the terminal's own.
        self._plain = is_plain()
        self.visits = Visits(KEPT)

    def see(self, event: Event) -> None:
        apply_event(self.visits, event)
        if event.type in ("run.completed", "run.failed", "run.cancelled"):
            self._status, self._ended_at = event.type.partition(".")[2], event.at
        elif event.type == "run.resumed":
            self._status, self._ended_at = "running", None

    def stands(self, status: str) -> None:
        """How the run stands when nobody here advances it any more: what was cut off is to be done again."""
        self._status = status
        for visit in self.visits.open.values():
            if visit.state == "running" and status != "running":
                self.visits.set_state(visit, "ready")

    def drawn(self, now: int, width: int, height: int) -> Group:
        from rich.console import Group

        room = max(height - 4, 4)
        shown, left_out = self._shown(room)
        lines = [line for visit in shown for line in self._visit(visit, now, width)]
        earlier = [_text((f"  {left_out} more", "dim"))] if left_out else []
        return Group(self._head(now), *earlier, *lines[-room:], self._foot())

    def _shown(self, room: int) -> tuple[list[Visit], int]:
        """What is under way comes before what has ended; (those, how many are left out)."""
        opened, ended = list(self.visits.open.values())[:room], self.visits.ended
        recent = ended[-(room - len(opened)) :] if len(opened) < room else []
        count = self.visits.left_out + len(ended) + len(self.visits.open)
        shown = sorted([*recent, *opened], key=lambda visit: (visit.started_at, visit.visit, visit.label))
        return shown, count - len(shown)

    def _head(self, now: int) -> Text:
        row = self._row
        age = human_duration((self._ended_at or now) - row.created_at)
        return _text(
            (row.flow, "bold"),
            (f"  {row.id[:8]}  ", "dim"),
            (label_for(self._status), style_of(self._status)),
            f"  {age}",
        )

    def _foot(self) -> Text:
        """How many are how far, and what it has cost so far."""
        nodes = self.visits.nodes.values()
        counts = {"done": sum(node.done for node in nodes), "failed": sum(node.failed for node in nodes)}
        for visit in self.visits.open.values():
            counts[visit.state] = counts.get(visit.state, 0) + 1
        lines = [f"{count} {word}" for word, count in counts.items() if count]
        tokens, cost = sum(node.tokens for node in nodes), money(sum(node.cost for node in nodes))
        lines += [f"{tokens} tokens"] if tokens else []
        lines += [f"cost {cost}"] if cost else []
        return _text((" · ".join(lines), "dim"))

    def _visit(self, visit: Visit, now: int, width: int) -> list[Text]:
        style = style_of(visit.state)
        label = shortened(shown_name(visit.label, self._names), 40)
        took = human_duration((visit.ended_at or now) - visit.started_at)
        first = _text(
            (f"{_sign(visit, now, plain=self._plain)} ", style), f"{label:24} ", (f"{took:>10}", "dim")
        )
        about = _about(visit, now)
        if about:
            first.append(f"  {about}", style="red" if visit.error else style_of("note"))
        first.truncate(width, overflow="ellipsis")
        output = _output_tail(visit, width, plain=self._plain)
        return [first, *([_text((output, "dim italic"))] if output else [])]


def _text(*parts: Any) -> Text:
    from rich.text import Text

    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _sign(visit: Visit, now: int, *, plain: bool) -> str:
    if visit.state == "running":
        frames = _SPINNER[plain]
        return frames[now // 100_000 % len(frames)]
    return (ASCII_SIGNS if plain else SIGNS)[_SIGNS[visit.state]]


def _about(visit: Visit, now: int) -> str:
    """What is out of the ordinary: attempts, waits, steps inside, costs, errors."""
    parts = [f"visit {visit.visit}"] if visit.visit > 1 else []
    parts += [f"attempt {visit.attempts}"] if visit.attempts > 1 else []
    parts += [f"{visit.steps} steps"] if visit.steps else []
    parts += [f"{visit.tokens} tokens"] if visit.tokens else []
    parts += [f"cost {money(visit.cost)}"] if visit.cost else []
    waiting = next((wait for wait in reversed(visit.waits) if wait.until is None), None)
    if waiting is not None and waiting.kind == "person":
        parts.append(f"asks: {waiting.about}")
    elif waiting is not None and waiting.wake_at is not None:
        verb = "retries" if waiting.kind == "retry" else "wakes"
        parts.append(f"{verb} in {human_duration(waiting.wake_at - now)}")
    error = visit.last_error_text
    return clean_text(", ".join([*parts, *([error] if error else [])]))


def _output_tail(visit: Visit, width: int, *, plain: bool) -> str:
    """The end of what it tells, while it is at work."""
    if not visit.said or visit.ended_at is not None:
        return ""
    if visit.progress is not None:
        full = int(visit.progress * 20)
        drawn = ("#" * full + "-" * (20 - full)) if plain else ("━" * full + "╌" * (20 - full))
        return f"    {drawn} {visit.progress:.0%}"
    line = " ".join(clean_text(visit.said).split())
    room = width - 6
    return f"    {line if len(line) <= room else '…' + line[-room:]}"


BELOW = 3
"""Lines for what is under way."""
AROUND = 4
"""Of the head, the foot, and the space about the drawing."""


class GraphView(LiveView):
    """What does not fit is told as a list, as of every other run."""

    def __init__(self, row: RunRow, pipeline: Pipeline, graph: Graph) -> None:
        super().__init__(row, graph)
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
    graph = (await reader_of(service, row)).graph
    if dialect_of(row.version) != DIALECT:
        return LiveView(row, graph)
    return GraphView(row, pipeline_of(graph.spec), graph)
