"""The envelope of every payload: one byte, then the body as MessagePack, compressed where it pays.

    bits 7, 6   0 1: an envelope of ours
    bit 5       the rest is a zstd frame
    bits 4..0   version, 1 to 30 (31 is kept for a longer header)

So a plain record of version 1 begins with "A" and a compressed one with "a". Values inside a body are
what `codec.pack` made of them; `decode_body` leaves them so, because only their reader knows the types.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec

from holdfast.checkpoint.compress import compress, decompress, library
from holdfast.checkpoint.error_path import locate
from holdfast.checkpoint.size_limit import MAX_SIZE, require_value_size
from holdfast.checkpoint.upcast import VERSION, upcast
from holdfast.errors import (
    CheckpointCorruptError,
    SchemaTooNewError,
    ValueNotStorableError,
)

DIGEST_SIZE: Final = 16
_MARK: Final = 0b0100_0000
_MARK_BITS: Final = 0b1100_0000
_ZSTD: Final = 0b0010_0000
_VERSION_BITS: Final = 0b0001_1111
_PLAIN_HEADER: Final = bytes([_MARK | VERSION])
_ZSTD_HEADER: Final = bytes([_MARK | _ZSTD | VERSION])
# Up to here neither a limit nor compression can matter.
_SMALL: Final = 4096

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_any: Final = msgspec.msgpack.Decoder().decode
_decoders: Final[dict[Any, msgspec.msgpack.Decoder[Any]]] = {}

T = TypeVar("T")


def encode_body(body: msgspec.Struct, *, limit: int = MAX_SIZE) -> bytes:
    """The payload of a body whose values are packed. Raises ValueTooLargeError over `limit` encoded bytes,
    and ValueNotStorableError for invalid text and for values that were not packed.
    """
    try:
        content = _encode(body)
    except (UnicodeEncodeError, TypeError, OverflowError, RecursionError):
        # Encoded once more, only to find the place: the first call is the hot path.
        content = encode_packed(body)  # which reports the error
    if len(content) <= _SMALL <= limit:
        return _PLAIN_HEADER + content
    return pack_envelope(content, limit=limit)


def decode_body(data: bytes, kind: type[T], *, limit: int = MAX_SIZE) -> T:
    """The body in a payload, its values still packed.

    Raises SchemaTooNewError for a version after ours, CheckpointCorruptError for anything that cannot
    be read. A changed byte that still reads as a body is found by `record_digest`, not here.
    """
    version, content = unpack_envelope(data, limit=limit)
    try:
        if version == VERSION:
            return _decoder(kind).decode(content)
        # Old versions are decoded without types, changed as plain data, and converted: their types are gone.
        return msgspec.convert(upcast(kind.__name__, _decode_any(content), version), kind)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointCorruptError(f"a {kind.__name__} record cannot be read: {error}") from error


def encode_packed(packed: Any) -> bytes:
    """Bytes of a body or of one packed value. Raises ValueNotStorableError."""
    try:
        return _encode(packed)
    except UnicodeEncodeError:
        place = locate(packed, _is_no_text, type(packed).__name__)
        raise ValueNotStorableError(
            f"{place} has half of a surrogate pair, which is no character.",
            hint="Decode it with errors='replace', or store it as bytes.",
        ) from None
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueNotStorableError(f"a {type(packed).__name__} cannot be stored: {error}") from error


def decode_packed(data: bytes, *, limit: int = MAX_SIZE) -> Any:
    """The packed value in an envelope that contains nothing else. Raises as `decode_body`."""
    version, content = unpack_envelope(data, limit=limit)
    try:
        return upcast("value", _decode_any(content), version)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointCorruptError(f"a stored value cannot be read: {error}") from error


def pack_envelope(content: bytes, *, limit: int = MAX_SIZE) -> bytes:
    """Encoded bytes with their header, compressed where it pays."""
    size = len(content)
    require_value_size(size, limit)
    small = compress(content) if size > _SMALL else None
    return _PLAIN_HEADER + content if small is None else _ZSTD_HEADER + small


def unpack_envelope(data: bytes, *, limit: int = MAX_SIZE) -> tuple[int, bytes | memoryview]:
    """(version, encoded bytes)."""
    header = data[0] if data else 0
    version = header & _VERSION_BITS
    if header & _MARK_BITS != _MARK or version == 0:
        raise CheckpointCorruptError("a payload has no header that Holdfast writes.")
    if version > VERSION:
        raise SchemaTooNewError(
            f"a payload has the version {version}; this Holdfast reads up to {VERSION}.",
            hint="Upgrade Holdfast on this machine.",
            version=version,
        )
    rest = memoryview(data)[1:]
    return version, decompress(rest, limit) if header & _ZSTD else rest


def content_size(data: bytes) -> int:
    """Encoded bytes in an envelope that we made: before it was compressed."""
    if not data[0] & _ZSTD:
        return len(data) - 1
    return int(library().get_frame_info(memoryview(data)[1:]).decompressed_size)


def stated_size(data: bytes) -> int:
    """The same of any bytes; 0 if they do not say it."""
    try:
        return content_size(data)
    except (IndexError, TypeError, library().ZstdError):
        return 0


def record_digest(
    kind: int, at: int, node: str, scope: str, visit: int, outcome: str, payload: bytes
) -> bytes:
    """Identifies a record that is settled twice (D-8), and verifies it when it is read."""
    # The lengths make the joined text unambiguous.
    head = f"{kind},{at},{visit},{len(node)},{len(scope)},{len(outcome)};{node}{scope}{outcome}"
    return sha256(head.encode("utf-8", "surrogatepass") + payload).digest()[:DIGEST_SIZE]


def _decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]:
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    return decoder


def _is_no_text(part: Any) -> bool:
    try:
        _encode(part)
    except UnicodeEncodeError:
        return True
    return False
