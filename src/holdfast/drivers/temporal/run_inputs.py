"""The input of a run, read from the store once for all items of its maps that run in this process."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from holdfast.drivers.temporal.unavailable import while_unavailable
from holdfast.model.program import Program
from holdfast.runs.driver.load import load
from holdfast.runs.driver.runtime import Runtime
from holdfast.store.rows import RunRow
from holdfast.types.ids import RunId

_KEPT: Final = 8
"""Runs whose input is kept: each may have megabytes."""


class RunInputs:
    """An input never changes: a fork has its own."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._found: dict[RunId, dict[str, Any]] = {}
        self._lock = asyncio.Lock()

    async def of(self, program: Program, row: RunRow) -> dict[str, Any]:
        async with self._lock:
            found = self._found.pop(row.id, None)
            if found is None:
                found = await while_unavailable(lambda: self._read(program, row))
            # The one that was asked for last is dropped last.
            self._found[row.id] = found
            while len(self._found) > _KEPT:
                del self._found[next(iter(self._found))]
        return dict(found)

    async def _read(self, program: Program, row: RunRow) -> dict[str, Any]:
        runtime = self._runtime
        codec = runtime.codec_for(program, row.tenant)
        # The oldest record that retention has left has it.
        loaded = await load(
            runtime.store, codec, program.graph, row.id, blobs=runtime.blobs, upto=row.horizon
        )
        await runtime.blobs.materialise(loaded.pos, codec.registry)
        return loaded.pos.scopes[""].tree.see(0, "input")
