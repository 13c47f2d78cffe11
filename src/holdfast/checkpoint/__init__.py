"""Checkpoints as bytes: exact values, a closed registry of types, versioned envelopes, spilled blobs."""

from __future__ import annotations

from holdfast.checkpoint.codec import pack, unpack
from holdfast.checkpoint.envelope import record_digest, seal, unseal
from holdfast.checkpoint.registry import TypeRegistry

__all__ = ["TypeRegistry", "pack", "record_digest", "seal", "unpack", "unseal"]
