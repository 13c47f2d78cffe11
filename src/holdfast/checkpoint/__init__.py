"""Checkpoints as bytes: exact values, a closed registry of types, versioned envelopes, spilled blobs.

Writing: `freeze` (types.value) -> `pack` -> `spill` -> a body -> `encode_body`.
Reading: `decode_body` -> `unpack`, and `unspill` for what was a BlobRef.
"""

from __future__ import annotations

from holdfast.checkpoint.codec import pack, unpack
from holdfast.checkpoint.envelope import decode_body, encode_body, record_digest
from holdfast.checkpoint.registry import TypeRegistry
from holdfast.checkpoint.size_limit import MAX_SIZE, SPILL_OVER
from holdfast.checkpoint.spill import Blob, spill, unspill
from holdfast.checkpoint.upcast import VERSION

__all__ = [
    "MAX_SIZE",
    "SPILL_OVER",
    "VERSION",
    "Blob",
    "TypeRegistry",
    "decode_body",
    "encode_body",
    "pack",
    "record_digest",
    "spill",
    "unpack",
    "unspill",
]
