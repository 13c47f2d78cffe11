"""A fan-out without branches: nothing to do. One with branches is the engine's own kind of node."""

from __future__ import annotations

from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome


class ParallelHandler:
    async def perform(self, visit: Visit) -> Outcome:
        return Outcome(notes=f"No branches: {visit.stage.id}")
