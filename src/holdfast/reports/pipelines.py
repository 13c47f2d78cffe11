"""A pipeline as a picture: shapes by handler, labels, conditions; on top the states of a run, if any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.drawing import Look, Mark, Picture, PictureEdge, PictureNode, Shape, Told
from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.handler_kinds import kind_of

SHAPES: Final = {
    "start": Shape.entry,
    "exit": Shape.exit,
    "wait.human": Shape.hold,
    "conditional": Shape.choice,
    "parallel": Shape.fork,
    "parallel.fan_in": Shape.meet,
    "tool": Shape.tool,
    "stack.manager_loop": Shape.manager,
}
_FAILURES: Final = frozenset({"outcome=fail", "outcome!=success"})


def picture_of_pipeline(
    pipeline: Pipeline,
    told: Mapping[str, Told] | None = None,
    *,
    marks: Mapping[tuple[str, str], Mark] | None = None,
) -> Picture:
    """`told` is by stage, `marks` by the ends of an edge."""
    known, marked = told or {}, marks or {}
    return Picture(
        nodes=tuple(_node(stage, known.get(name, Told())) for name, stage in pipeline.stages.items()),
        edges=tuple(
            _edge(link, marked.get((link.source, link.target), Mark.none)) for link in pipeline.links
        ),
        title=pipeline.text("label") or pipeline.name,
    )


def _node(stage: Stage, about: Told) -> PictureNode:
    kind = kind_of(stage)
    shape = Shape.subflow if stage.text("subgraph_file") else SHAPES.get(kind, Shape.task)
    return PictureNode(
        id=stage.id,
        label=stage.label,
        shape=shape,
        state=about.state,
        mark=about.mark,
        note=about.note or _note(stage),
        detail=about.detail or _detail(stage, kind),
    )


def _note(stage: Stage) -> str:
    """What decides how the stage runs and is not seen otherwise."""
    words = ["goal gate"] if stage.flag("goal_gate") else []
    if stage.type and stage.type not in SHAPES:
        words.append(stage.type)
    words += filter(None, (stage.text("subgraph_file"), stage.text("tool_command"), stage.text("llm_model")))
    return " · ".join(words)


def _detail(stage: Stage, kind: str) -> str:
    prompt = " ".join(stage.prompt.split())
    cut = prompt if len(prompt) <= 200 else f"{prompt[:199]}…"
    return "; ".join(filter(None, (f"{stage.id}, {kind}", cut)))


def _edge(link: Link, mark: Mark) -> PictureEdge:
    condition = link.condition.strip()
    label = f"{link.label} ({condition})" if link.label and condition else link.label or condition
    if link.flag("loop_restart"):
        label = f"{label} (restart)".strip()
    return PictureEdge(
        source=link.source, target=link.target, label=label, look=_look(link, condition), mark=mark
    )


def _look(link: Link, condition: str) -> Look:
    if "".join(condition.split()) in _FAILURES:
        return Look.failure
    return Look.conditional if condition else Look.plain
