"""The entry point: nothing to do.

A routing point: the engine chooses by the conditions on its edges, and passes on what led here.

The exit point: nothing to do. Whether goal gates let the pipeline out is the engine's to say.

A fan-out without branches: nothing to do. One with branches is the engine's own kind of node.
"""

from __future__ import annotations

from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome
from holdfast.frontends.dot.document import Stage


class StartHandler:
    def at_once(self, _stage: Stage) -> StageOutcome:
        return StageOutcome()

    async def perform(self, visit: StageVisit) -> StageOutcome:
        return self.at_once(visit.stage)


class ConditionalHandler:
    def at_once(self, stage: Stage) -> StageOutcome:
        return StageOutcome(notes=f"Conditional node evaluated: {stage.id}")

    async def perform(self, visit: StageVisit) -> StageOutcome:
        return self.at_once(visit.stage)


class ExitHandler:
    def at_once(self, _stage: Stage) -> StageOutcome:
        return StageOutcome()

    async def perform(self, visit: StageVisit) -> StageOutcome:
        return self.at_once(visit.stage)


class ParallelHandler:
    async def perform(self, visit: StageVisit) -> StageOutcome:
        return StageOutcome(notes=f"No branches: {visit.stage.id}")
