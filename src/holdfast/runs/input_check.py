"""The state with which a run starts: its input, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.model.program import Program


async def checked_input(program: Program, given: Any, tenant: str) -> tuple[Any, dict[str, Any]]:
    """As `StateSchema.start`; in a thread if that may take long, so that others are answered meanwhile.

    Raises StateError, and RateLimitedError if too many inputs of the tenant wait."""
    if not program.schema.is_slow_to_start(given):
        return program.schema.start(given)
    from holdfast.holds.forms.schema_threads import compare

    return await compare(tenant, True, program.schema.start, given)
