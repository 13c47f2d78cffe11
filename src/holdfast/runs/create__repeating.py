"""A request that comes twice: the same is answered with the run that it made, another one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.checkpoint.json_view import jsonable
from holdfast.errors import KeyReusedError

if TYPE_CHECKING:
    from holdfast.model.program import Program
    from holdfast.runs.service import RunService
    from holdfast.store.protocols import RunRow


async def demand_same(service: RunService, row: RunRow, program: Program, given: Any, key: str) -> None:
    """Raises KeyReusedError where the run that the key stands for was started with another input. One whose
    beginning is pruned cannot be asked any more, and counts as the same."""
    if row.horizon > 0:
        return
    first = await service.checkpoint(row.id, 0)
    start, _ = program.schema.start(given)
    if jsonable(first.input) != jsonable(start):
        raise KeyReusedError(
            f"the idempotency key {key!r} stands for run {row.id}, which has another input.",
            hint="Give each request a key of its own, and the same key only to the same request.",
            run=row.id,
        )
