"""zstd where it helps: nothing small, nothing that does not shrink, and no decompression bomb."""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import Any, Final, cast

from holdfast.errors import CheckpointCorruptError

WORTH_TRYING: Final = 4096
# The default of zstd: every settle of a large value pays for a higher one.
LEVEL: Final = 3
MAX_DECOMPRESSED: Final = 256 * 2**20


@cache
def library() -> Any:
    """Imported with the first large record: most programs start without one."""
    found: ModuleType
    if sys.version_info >= (3, 14):
        from compression import zstd as found
    else:
        from backports import zstd as found
    return found


def compress(data: bytes) -> bytes | None:
    """The compressed form, or None if it would save a tenth or less."""
    if len(data) <= WORTH_TRYING:
        return None
    small: bytes = library().compress(data, LEVEL)
    return small if len(small) * 10 < len(data) * 9 else None


def decompress(data: bytes | memoryview, limit: int = MAX_DECOMPRESSED) -> bytes:
    """The inverse of `compress`. Raises CheckpointCorruptError, also for more than `limit` bytes."""
    zstd = library()
    try:
        # None if the header has no size; `compress` always writes it.
        stated = cast("int | None", zstd.get_frame_info(data).decompressed_size)
        if stated is None or stated > limit:
            raise CheckpointCorruptError(
                f"a compressed record claims to hold {stated} bytes; {limit} are allowed."
            )
        # The frame's header may be wrong: never produce more than it states.
        # One byte more than stated is allowed, so that a frame which is too long is noticed, not cut.
        reader = zstd.ZstdDecompressor()
        whole: bytes = reader.decompress(data, max_length=stated + 1)
        complete = reader.eof and len(whole) == stated and not reader.unused_data
    except zstd.ZstdError as error:
        raise CheckpointCorruptError(f"a compressed record cannot be read: {error}") from None
    if not complete:
        raise CheckpointCorruptError("a compressed record is cut off, or something follows it.")
    return whole
