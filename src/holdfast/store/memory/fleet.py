"""The part of the memory store that is about who works, who died, and how much there is to do."""

from __future__ import annotations

from holdfast.store.memory.tables import Tables
from holdfast.types.fleet import Death, FleetFigures, WorkerRow
from holdfast.types.ids import RunId


class Fleet(Tables):
    async def announce(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        raise NotImplementedError

    async def workers(self) -> list[WorkerRow]:
        raise NotImplementedError

    async def dismiss(self, name: str, incarnation: str) -> None:
        raise NotImplementedError

    async def deaths(self, run: RunId) -> list[Death]:
        raise NotImplementedError

    async def figures(self, *, ages: tuple[int, ...]) -> FleetFigures:
        raise NotImplementedError
