"""Which handler a stage is for: by its type, else by its shape, else the model's."""

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
    """A type that is not known falls through to the shape. `start`, `exit` and `end` that give themselves no
    shape are what they say."""
    if "type" in stage.attrs and stage.type in known:
        return stage.type
    if "shape" not in stage.explicit and SHAPES.get(stage.shape, DEFAULT) == DEFAULT:
        if stage.id in STARTS:
            return "start"
        if stage.id in EXITS:
            return "exit"
    return SHAPES.get(stage.shape, DEFAULT)
