"""Chooses the handler of a stage: by its type, else by its shape, else the model's handler (`codergen`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.model.graph import GATE

SHAPES: Final = {
    "Mdiamond": "start",
    "Msquare": "exit",
    "box": "codergen",
    "hexagon": GATE,
    "diamond": "conditional",
    "component": "parallel",
    "tripleoctagon": "parallel.fan_in",
    "parallelogram": "tool",
    "house": "stack.manager_loop",
}
DEFAULT: Final = "codergen"
BUILT_IN: Final = frozenset(SHAPES.values())
STARTS: Final = ("start",)
EXITS: Final = ("exit", "end")
"""Ids of the start and the exit, in any case, where no stage has their shape."""


def kind_of(stage: Stage, known: Collection[str] = BUILT_IN) -> str:
    """The name of the stage's handler. If the type is not known, the shape decides. A stage with the id
    `start`, `exit` or `end` that sets no shape itself is the start or the exit."""
    if "type" in stage.attrs and stage.type in known:
        return stage.type
    if "shape" not in stage.explicit and SHAPES.get(stage.shape, DEFAULT) == DEFAULT:
        if stage.id.lower() in STARTS:
            return "start"
        if stage.id.lower() in EXITS:
            return "exit"
    return SHAPES.get(stage.shape, DEFAULT)


def with_ordinary_names(pipeline: Pipeline) -> tuple[Pipeline, list[tuple[Stage, Stage]]]:
    """Where a stage has the shape of the start or the exit, another one with such an id is an ordinary stage.
    Returns these too, each with the stage that has the shape."""
    found: list[tuple[Stage, Stage]] = []
    stages = pipeline.stages
    for shape, names in (("Mdiamond", STARTS), ("Msquare", EXITS)):
        named = [stage for stage in stages.values() if stage.id.lower() in names and _has_no_shape(stage)]
        if not named:
            continue
        shaped = next((stage for stage in stages.values() if stage.shape == shape), None)
        found += [] if shaped is None else [(stage, shaped) for stage in named]
    if not found:
        return pipeline, []
    plain = {
        stage.id: replace(stage, attrs={**stage.attrs, "shape": "box"}, explicit=stage.explicit | {"shape"})
        for stage, _ in found
    }
    return replace(pipeline, stages={**stages, **plain}), found


def _has_no_shape(stage: Stage) -> bool:
    return "shape" not in stage.explicit and "type" not in stage.attrs and stage.shape == "box"
