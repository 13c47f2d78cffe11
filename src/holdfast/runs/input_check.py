"""The state with which a run starts: its input, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.runs.tenant_thread_pool import TenantThreads

if TYPE_CHECKING:
    from holdfast.model.program import Program

_THREADS: Final = TenantThreads(
    "inputs", threads=2, most=16, what="large inputs of this tenant are being checked"
)


async def checked_input(program: Program, given: Any, tenant: str) -> tuple[Any, dict[str, Any]]:
    """As `StateSchema.start`; in a thread if that may take long, so that others are answered meanwhile.

    Raises StateError, and RateLimitedError if too many inputs of the tenant wait."""
    if not program.schema.is_slow_to_start(given):
        return program.schema.start(given)
    return await _THREADS.run(tenant, program.schema.start, given)
