"""How large a stored value, a step and live output may be, in encoded bytes."""

from __future__ import annotations

from typing import Final

from holdfast.errors import ValueTooLargeError

MAX_SIZE: Final = 256 * 2**20
"""Of one value, and of one record."""
MAX_EMITTED: Final = MAX_SIZE // 2
"""Of one piece of live output: so that a batch of them fits into one record."""
SPILL_OVER: Final = 64 * 1024
"""A larger value is not in its record but in the blob store."""


def require_value_size(size: int, limit: int = MAX_SIZE) -> None:
    """Raises ValueTooLargeError."""
    if size > limit:
        raise ValueTooLargeError(
            f"a value of {size:,} encoded bytes is over the limit of {limit:,}.",
            hint="Store a file or an artifact and keep its reference in the state.",
            size=size,
            limit=limit,
        )


def require_step_size(size: int) -> None:
    """What a step adds to lists, which stay in its record. Raises ValueTooLargeError."""
    if size > MAX_SIZE:
        raise ValueTooLargeError(
            f"a step adds {size:,} encoded bytes to lists, over the limit of {MAX_SIZE:,} for one step.",
            hint="Add them in several steps, or store a file and keep its reference in the state.",
            size=size,
            limit=MAX_SIZE,
        )


def require_emitted_size(size: int, where: str) -> None:
    """Raises ValueTooLargeError."""
    if size > MAX_EMITTED:
        raise ValueTooLargeError(
            f"{where} has {size:,} encoded bytes, over the limit of {MAX_EMITTED:,}.",
            hint="Emit it in pieces, or store it with ctx.artifact.",
            size=size,
            limit=MAX_EMITTED,
        )
