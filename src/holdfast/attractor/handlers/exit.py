"""The exit point: nothing to do. Whether goal gates let the pipeline out is the engine's to say."""

from __future__ import annotations

from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome


class ExitHandler:
    async def perform(self, visit: Visit) -> Outcome:
        return Outcome()
