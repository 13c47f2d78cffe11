"""Where data is compared with JSON Schemas: in the event loop while that is quick, else in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from holdfast.types.hold import HoldRow
from holdfast.types.tenant_thread_pool import TenantThreads
from holdfast.types.value import has_few_values

T = TypeVar("T")

FEW: Final = 1_000
"""Values that are compared with a schema in the event loop."""
SHORT: Final = 20_000
"""Bytes of a schema, the same."""
_THREADS: Final = TenantThreads(
    "schemas", threads=2, most=16, what="large values of this tenant are being checked"
)


def is_slow(row: HoldRow, data: Any) -> bool:
    """Whether the data of an answer should not be compared with its form or schema in the event loop."""
    return row.schema is not None and (len(row.schema) > SHORT or not has_few_values(data, FEW))


async def compare(tenant: str, is_slow: bool, work: Callable[..., T], *args: Any) -> T:
    """What `work` gives. Raises RateLimitedError if too many comparisons of the tenant wait."""
    return await _THREADS.run(tenant, work, *args) if is_slow else work(*args)
