"""Memories: put once by their id, found by the words of their content."""

from __future__ import annotations

from holdfast.store.memory.tables import MemoryTables
from holdfast.types.memory import Memory, words


class MemoryNodeMemories(MemoryTables):
    async def put_memory(self, memory: Memory) -> None:
        with self._lock:
            self._remember(memory)

    async def find_memories(self, *, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        wanted = words(query)
        with self._lock:
            found = [
                m
                for m in reversed(self._memories.values())
                if m.tenant == tenant and m.scope == scope and all(w in m.content.casefold() for w in wanted)
            ]
        return sorted(found, key=_weakest_last)[:limit]


def _weakest_last(memory: Memory) -> float:
    return -memory.strength
