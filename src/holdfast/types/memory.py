"""Memories: what nodes keep beyond one run."""

from __future__ import annotations

import msgspec


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """One memory. Its id is derived from the node and step that wrote it, so writing it again changes
    nothing."""

    id: str
    tenant: str
    scope: str
    type: str
    content: str
    strength: float = 1.0
    at: int = 0


def words(text: str) -> list[str]:
    """The words that a text is searched by, in lower case."""
    return text.casefold().split()
