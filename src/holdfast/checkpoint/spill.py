"""Large values are moved from the record to the blob store, under the hash of the stored bytes.

Blobs go first: an orphan blob is garbage, a missing one is data loss (D-37). The address is the sha256 of the
blob's stored bytes, so that a blob can be verified without decoding it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from holdfast.checkpoint.codec import unpack
from holdfast.checkpoint.envelope import decode_packed, encode_packed, pack_envelope, stated_size
from holdfast.checkpoint.registry import EMPTY, TypeRegistry
from holdfast.checkpoint.scalars import pack_blob_ref
from holdfast.checkpoint.shapes import kind_of
from holdfast.checkpoint.size_limit import MAX_SIZE, SPILL_OVER
from holdfast.errors import BlobMissingError
from holdfast.types.value import BlobRef

_SHORT: Final = frozenset({int, float, bool, type(None)})
# The longest head of a text, a byte string or an extension.
_HEAD: Final = 6
# The longest character in UTF-8.
_WIDEST: Final = 4


_QUICK: Final = 4 * 2**20
"""Bytes that are read in a few milliseconds."""
_PACKED: Final = 128
"""zstd makes no fewer of so many: a block of 128 KiB takes four at least."""


class Blob(msgspec.Struct, frozen=True):
    """Bytes to put into the blob store before the record that names them."""

    ref: BlobRef
    data: bytes


def spill(packed: Any, threshold: int = SPILL_OVER, *, limit: int = MAX_SIZE) -> tuple[Any, list[Blob]]:
    """What replaces a packed value in the record, and the blobs to put first.

    Containers are returned encoded (`msgspec.Raw`), because measuring is encoding and once is enough: the
    result is only for `encode_body`. Raises ValueTooLargeError over `limit` encoded bytes.
    """
    if _is_surely_small(packed, threshold):
        return packed, []
    content = encode_packed(packed)
    if len(content) <= threshold:
        return msgspec.Raw(content), []
    data = pack_envelope(content, limit=limit)
    ref = BlobRef(sha256(data).digest(), len(data))
    return pack_blob_ref(ref), [Blob(ref, data)]


def unspill(
    ref: BlobRef, data: bytes | None, registry: TypeRegistry = EMPTY, *, limit: int = MAX_SIZE
) -> Any:
    """The frozen value of a reference, given the bytes from the blob store. Raises BlobMissingError if there
    are none, or they were changed.
    """
    if data is None:
        raise _lost(ref, "is not in the store")
    # Cheaper than the hash, and it names the usual damage: a file that was cut off.
    if len(data) != ref.size:
        raise _lost(ref, f"has {len(data)} bytes instead of {ref.size}")
    if sha256(data).digest() != ref.digest:
        raise _lost(ref, "does not match its hash")
    return unpack(decode_packed(data, limit=limit), registry)


def is_long_to_read(data: bytes) -> bool:
    """Whether an event loop should not wait for `unspill`. Of damaged bytes it does not matter."""
    return len(data) > _QUICK or (len(data) > _PACKED and stated_size(data) > _QUICK)


def _is_surely_small(packed: Any, threshold: int) -> bool:
    """Known without examining the content, so the cost does not depend on the size."""
    kind = kind_of(packed)
    if kind in _SHORT:
        return True
    if kind is str:
        widest = len(packed) if packed.isascii() else len(packed) * _WIDEST
        return widest + _HEAD <= threshold
    if kind is bytes:
        return len(packed) + _HEAD <= threshold
    return kind is Ext and len(packed.data) + _HEAD <= threshold


def _lost(ref: BlobRef, what: str) -> BlobMissingError:
    return BlobMissingError(
        f"the blob {ref.digest.hex()} {what}.",
        hint="Restore it from a backup of the blob store, or resume from a checkpoint that does not need it.",
        digest=ref.digest.hex(),
    )
