"""A run's graph as its story leaves it: the state of each node, the edges that were taken."""

from __future__ import annotations

from holdfast.drawing import Mark, Picture, State, Told, from_graph
from holdfast.model.graph import Edge, Graph
from holdfast.runs.story import Chapter, Story
from holdfast.runs.visits import path_of
from holdfast.types.lasting import lasting

_STATES = {
    "done": State.done,
    "failed": State.failed,
    "skipped": State.skipped,
    "abandoned": State.skipped,
    "stopped": State.skipped,
    "unknown": State.unknown,
    "running": State.ready,
}


def story_picture(graph: Graph, story: Story, title: str = "", *, expand: bool = True) -> Picture:
    by_path: dict[str, list[Chapter]] = {}
    for chapter in story.chapters:
        by_path.setdefault(path_of(chapter.scope) + chapter.node, []).append(chapter)
    told = {path: _told(chapters) for path, chapters in by_path.items()}
    for label in story.skipped:
        told.setdefault(_path(label), Told(state=State.skipped))
    taken = {_path(edge) for chapter in story.chapters for edge in chapter.edges}

    def mark(path: str, edge: Edge) -> Mark:
        return Mark.taken if path + edge.id in taken else Mark.none

    return from_graph(graph, told, expand=expand, mark=mark)


def _path(label: str) -> str:
    scope, slash, name = label.rpartition("/")
    return path_of(scope + slash) + name


def _told(chapters: list[Chapter]) -> Told:
    last = chapters[-1]
    waits = any(question.status == "pending" for question in last.questions) and last.ended_at is None
    failed = any(chapter.halts and not chapter.handed_to for chapter in chapters)
    state = State.failed if failed else State.asking if waits else _STATES.get(last.state, State.idle)
    return Told(state=state, note=_note(chapters))


def _note(chapters: list[Chapter]) -> str:
    retries = sum(trial.reason == "retry" for chapter in chapters for trial in chapter.trials)
    work = sum(chapter.duration for chapter in chapters)
    parts = [
        f"{len(chapters)} visits" if len(chapters) > 1 else "",
        f"{retries} {'retry' if retries == 1 else 'retries'}" if retries else "",
        lasting(work) if work >= 1_000 else "",
    ]
    return ", ".join(part for part in parts if part)
