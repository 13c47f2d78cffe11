"""Chooses the handler of a stage: by its type, else by its shape, else the model's handler (`codergen`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from holdfast.frontends.dot.document import Stage

SHAPES: Final = {
    "Mdiamond": "start",
    "Msquare": "exit",
    "box": "codergen",
    "hexagon": "wait.human",
    "diamond": "conditional",
    "component": "parallel",
    "tripleoctagon": "parallel.fan_in",
    "parallelogram": "tool",
    "house": "stack.manager_loop",
}
DEFAULT: Final = "codergen"
BUILT_IN: Final = frozenset(SHAPES.values())
STARTS: Final = ("start", "Start")
EXITS: Final = ("exit", "end")


def kind_of(stage: Stage, known: Collection[str] = BUILT_IN) -> str:
    """The name of the stage's handler. If the type is not known, the shape decides. A stage with the id
    `start`, `exit` or `end` that sets no shape itself is the start or the exit."""
    if "type" in stage.attrs and stage.type in known:
        return stage.type
    if "shape" not in stage.explicit and SHAPES.get(stage.shape, DEFAULT) == DEFAULT:
        if stage.id in STARTS:
            return "start"
        if stage.id in EXITS:
            return "exit"
    return SHAPES.get(stage.shape, DEFAULT)
