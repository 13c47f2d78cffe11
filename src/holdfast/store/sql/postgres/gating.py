"""The part of the PostgreSQL store that is about gates."""

from __future__ import annotations

from holdfast.types.gate import Gate


class Gating:
    async def put_gate(self, gate: Gate) -> Gate:
        raise NotImplementedError

    async def gates(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[Gate, int, int]]:
        raise NotImplementedError

    async def drop_gate(self, name: str) -> bool:
        raise NotImplementedError
