"""The entry point: nothing to do."""

from __future__ import annotations

from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome
from holdfast.frontends.dot.document import Stage


class StartHandler:
    def at_once(self, _stage: Stage) -> Outcome:
        return Outcome()

    async def perform(self, visit: Visit) -> Outcome:
        return self.at_once(visit.stage)
