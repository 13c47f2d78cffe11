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


class MemoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories are read. `query`: every word of it is in their content. `types`: one of these; none:
    any. `min_strength`: at least this strong. `semantic`: the most like this text first, and none that is not
    like it; without it, the strongest first and then the newest."""

    tenant: str
    scope: str = "global"
    query: str = ""
    types: tuple[str, ...] = ()
    min_strength: float | None = None
    semantic: str = ""
    limit: int = 10

    @property
    def plain(self) -> bool:
        """Only by scope, words and number."""
        return not self.types and self.min_strength is None and not self.semantic

    def admits(self, memory: Memory) -> bool:
        """By everything but likeness."""
        return (
            (memory.tenant, memory.scope) == (self.tenant, self.scope)
            and (not self.types or memory.type in self.types)
            and (self.min_strength is None or memory.strength >= self.min_strength)
            and all(word in memory.content.casefold() for word in words(self.query))
        )


def words(text: str) -> list[str]:
    """The words that a text is searched by, in lower case."""
    return text.casefold().split()
