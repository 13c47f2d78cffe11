"""The transforms that are applied to every pipeline, and the protocol of a transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from msgspec.structs import replace

from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.stylesheet import StylesheetTransform

GOAL: Final = "$goal"


class Transform(Protocol):
    """Returns a new pipeline and does not change the one that it is given."""

    def apply(self, graph: Pipeline, /) -> Pipeline: ...


AnyTransform: TypeAlias = Transform | Callable[[Pipeline], Pipeline]


class VariableExpansionTransform:
    """Replaces `$goal` in prompts. Without a goal they do not change; validation reports it."""

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
"""Without the specification's preamble, which is made during a run because it depends on what happened."""
