"""The entry point: nothing to do."""

from __future__ import annotations

from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome


class StartHandler:
    async def perform(self, visit: Visit) -> Outcome:
        return Outcome()
