"""A routing point: the engine chooses by the conditions on its edges, and passes on what led here."""

from __future__ import annotations

from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome
from holdfast.frontends.dot.document import Stage


class ConditionalHandler:
    def at_once(self, stage: Stage) -> Outcome:
        return Outcome(notes=f"Conditional node evaluated: {stage.id}")

    async def perform(self, visit: Visit) -> Outcome:
        return self.at_once(visit.stage)
