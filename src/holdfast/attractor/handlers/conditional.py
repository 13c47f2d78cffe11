"""A routing point: the engine chooses by the conditions on its edges, and passes on what led here."""

from __future__ import annotations

from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome


class ConditionalHandler:
    async def perform(self, visit: Visit) -> Outcome:
        return Outcome(notes=f"Conditional node evaluated: {visit.stage.id}")
