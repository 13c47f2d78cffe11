"""What checkpoints fold to; nobody can ask this store in SQL, and it keeps the rows all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.memory.tables import MemoryTables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.types.ids import RunId
    from holdfast.types.projection import Projection


class MemoryProjections(MemoryTables):
    async def projected_to(self) -> int:
        with self._lock:
            return self._projected

    async def put_projections(self, rows: Sequence[Projection], *, upto: int) -> None:
        with self._lock:
            for row in rows:
                run = self._ids.get(row.run)
                if run is not None and run.horizon <= row.seq <= run.head:
                    run.projections.setdefault(row.seq, row)
            self._projected = max(self._projected, upto)

    async def projections(self, run: RunId) -> list[Projection]:
        with self._lock:
            found = self._ids.get(run)
            known = {} if found is None else found.projections
            return [row for seq, row in sorted(known.items()) if found is not None and seq >= found.horizon]

    async def blank_projections(self) -> None:
        with self._lock:
            for run in self._ids.values():
                for seq, row in run.projections.items():
                    blank = replace(row, node_states=None, original_input=None, output=None)
                    run.projections[seq] = blank
