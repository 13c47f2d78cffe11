"""The exit point: nothing to do. Whether goal gates let the pipeline out is the engine's to say."""

from __future__ import annotations

from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome
from holdfast.frontends.dot.document import Stage


class ExitHandler:
    def at_once(self, _stage: Stage) -> Outcome:
        return Outcome()

    async def perform(self, visit: Visit) -> Outcome:
        return self.at_once(visit.stage)
