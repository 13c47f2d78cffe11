"""The store in memory."""

from __future__ import annotations

from holdfast.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
