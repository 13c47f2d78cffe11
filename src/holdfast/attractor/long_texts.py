"""Output of many megabytes: what is read of it is read at its ends, and work on all of it is done in a
thread, because the leases of other runs depend on the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from holdfast.types.own_threads import in_thread

MANY: Final = 2**20
"""Characters whose handling takes long enough to be noticed by others."""
P = ParamSpec("P")
T = TypeVar("T")


async def handled(length: int, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """`length`: of the texts that the work reads or writes."""
    if length < MANY:
        return work(*args, **more)
    return await in_thread(work, *args, **more)


def byte_size(text: str, enough: int = 0) -> int:
    """In UTF-8. `enough`: a number of bytes; for a text that has no more of them, a size up to it."""
    # A character has at most four bytes: most texts need not be encoded.
    if text.isascii() or len(text) * 4 <= enough:
        return len(text)
    return len(text.encode("utf-8", "replace"))


def ends_of(text: str, head: int, tail: int) -> tuple[bytes, bytes]:
    """The first and the last bytes. A character has at least one."""
    first = text[:head].encode("utf-8", "replace")[:head]
    last = text[-tail:].encode("utf-8", "replace")[-tail:] if tail else b""
    return first, last


def last_line(text: str) -> str:
    """The last line that is not empty."""
    lines = text[-_NEAR_END:].strip().splitlines()
    if len(lines) < 2 and len(text) > _NEAR_END:
        lines = text.strip().splitlines()
    return lines[-1] if lines else ""


_NEAR_END: Final = 4096
