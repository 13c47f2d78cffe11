"""The transforms that every pipeline goes through, and what a transform is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from msgspec.structs import replace

from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.stylesheet import StylesheetTransform

GOAL: Final = "$goal"


class Transform(Protocol):
    """Answers another pipeline, and leaves the one that it was given as it was."""

    def apply(self, graph: Pipeline, /) -> Pipeline: ...


AnyTransform: TypeAlias = Transform | Callable[[Pipeline], Pipeline]


class VariableExpansionTransform:
    """Writes the goal into prompts. Without a goal they do not change; validation reports it."""

    def apply(self, pipeline: Pipeline) -> Pipeline:
        goal = pipeline.goal
        if not goal:
            return pipeline
        stages = {name: _expanded(stage, goal) for name, stage in pipeline.stages.items()}
        return replace(pipeline, stages=stages)


def _expanded(stage: Stage, goal: str) -> Stage:
    if GOAL not in stage.prompt:
        return stage
    return replace(stage, attrs={**stage.attrs, "prompt": stage.prompt.replace(GOAL, goal)})


BUILT_IN_TRANSFORMS: Final[tuple[Transform, ...]] = (VariableExpansionTransform(), StylesheetTransform())
"""The preamble of the specification is made while a run goes on: it depends on what happened."""
