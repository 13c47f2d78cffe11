"""A pipeline as a picture: shapes by handler, labels, conditions; on top the states of a run, if any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.drawing import EdgeStyle, Highlight, NodeOverlay, NodeShape, Picture, PictureEdge, PictureNode
from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.handler_kinds import kind_of

SHAPES: Final = {
    "start": NodeShape.entry,
    "exit": NodeShape.exit,
    "wait.human": NodeShape.hold,
    "conditional": NodeShape.choice,
    "parallel": NodeShape.fork,
    "parallel.fan_in": NodeShape.meet,
    "tool": NodeShape.tool,
    "stack.manager_loop": NodeShape.manager,
}
_FAILURES: Final = frozenset({"outcome=fail", "outcome!=success"})


def picture_of_pipeline(
    pipeline: Pipeline,
    shown: Mapping[str, NodeOverlay] | None = None,
    *,
    marks: Mapping[tuple[str, str], Highlight] | None = None,
) -> Picture:
    """`shown` is by stage, `marks` by the ends of an edge."""
    known, marked = shown or {}, marks or {}
    return Picture(
        nodes=tuple(_node(stage, known.get(name, NodeOverlay())) for name, stage in pipeline.stages.items()),
        edges=tuple(
            _edge(link, marked.get((link.source, link.target), Highlight.none)) for link in pipeline.links
        ),
        title=pipeline.text("label") or pipeline.name,
    )


def _node(stage: Stage, about: NodeOverlay) -> PictureNode:
    kind = kind_of(stage)
    shape = NodeShape.subflow if stage.text("subgraph_file") else SHAPES.get(kind, NodeShape.task)
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
    """Options that affect the stage and are not visible otherwise."""
    words = ["goal gate"] if stage.flag("goal_gate") else []
    if stage.type and stage.type not in SHAPES:
        words.append(stage.type)
    words += filter(None, (stage.text("subgraph_file"), stage.text("tool_command"), stage.text("llm_model")))
    return " · ".join(words)


def _detail(stage: Stage, kind: str) -> str:
    prompt = " ".join(stage.prompt.split())
    cut = prompt if len(prompt) <= 200 else f"{prompt[:199]}…"
    return "; ".join(filter(None, (f"{stage.id}, {kind}", cut)))


def _edge(link: Link, mark: Highlight) -> PictureEdge:
    condition = link.condition.strip()
    label = f"{link.label} ({condition})" if link.label and condition else link.label or condition
    if link.flag("loop_restart"):
        label = f"{label} (restart)".strip()
    return PictureEdge(
        source=link.source, target=link.target, label=label, look=_edge_style(link, condition), mark=mark
    )


def _edge_style(link: Link, condition: str) -> EdgeStyle:
    if "".join(condition.split()) in _FAILURES:
        return EdgeStyle.failure
    return EdgeStyle.conditional if condition else EdgeStyle.plain
