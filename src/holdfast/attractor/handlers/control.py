"""Stages without work: start, conditional, exit, and a fan-out without branches.

A conditional passes on the outcome before it; the engine selects by the conditions on its edges. The engine
also checks the goal gates at the exit, and runs the branches of a fan-out that has some.
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
