"""What nodes remember beyond one run."""

from __future__ import annotations

import msgspec


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """One trace. Its id says who wrote it and when in the run, so that writing it again changes nothing."""

    id: str
    tenant: str
    scope: str
    type: str
    content: str
    strength: float = 1.0
    at: int = 0


def words(text: str) -> list[str]:
    """How a text is searched: by each of its words, whatever their case."""
    return text.casefold().split()
