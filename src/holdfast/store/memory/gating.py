"""The part of the memory store that is about gates."""

from __future__ import annotations

from holdfast.store.memory.tables import Tables
from holdfast.types.gate import Gate


class Gating(Tables):
    async def put_gate(self, gate: Gate) -> Gate:
        raise NotImplementedError

    async def gates(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[Gate, int, int]]:
        raise NotImplementedError

    async def drop_gate(self, name: str) -> bool:
        raise NotImplementedError
