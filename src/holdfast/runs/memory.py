"""Memory: what nodes remember beyond one run, and how much of that a run records (D-22).

`live`: every read and write uses the memory. `snapshot`: what a node read and wrote is recorded; on re-entry
it is returned from the record. `journaled`: as snapshot, and writes are pending until the node has settled:
with the store's own memory they are written in the transaction of that settle, so exactly once or not at all.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from holdfast.model.record_bodies import SubstepBody
from holdfast.store.protocols import Memories
from holdfast.types.ids import derived_id
from holdfast.types.memory import Memory, words
from holdfast.types.value import FrozenDict, FrozenList

READ, WRITE = "memory.read", "memory.write"
RECORDED = frozenset({"snapshot", "journaled"})


class MemoryBackend(Protocol):
    """Any memory. Writing a trace twice under one id must change nothing."""

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Memory]: ...

    async def write(self, memory: Memory) -> None: ...


class InProcessMemory:
    """Lost with the process; for tests and for flows that need no more."""

    def __init__(self) -> None:
        self._traces: dict[tuple[str, str], Memory] = {}

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        found = [
            m for m in reversed(self._traces.values())
            if (m.tenant, m.scope) == (tenant, scope) and all(w in m.content.casefold() for w in words(query))
        ]  # fmt: skip
        return sorted(found, key=lambda m: -m.strength)[:limit]

    async def write(self, memory: Memory) -> None:
        self._traces.setdefault((memory.tenant, memory.id), memory)


class StoredMemory:
    """In the store that keeps the runs."""

    def __init__(self, store: Memories) -> None:
        self.store = store

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        return await self.store.find_memories(tenant=tenant, scope=scope, query=query, limit=limit)

    async def write(self, memory: Memory) -> None:
        await self.store.put_memory(memory)


class MemoryContext(Protocol):
    """What a node's memory needs of the context of its handler."""

    @property
    def tenant(self) -> str: ...

    def memory_scope(self, scope: str) -> str: ...

    def take_recorded(self, name: str) -> tuple[str, Any]: ...

    async def record(self, body: SubstepBody) -> Any: ...

    def remember_later(self, memory: Memory) -> None: ...

    def trace_id(self, ordinal: str) -> str: ...

    def now(self) -> int: ...


class ThreadCalls(Protocol):
    def from_thread(self, work: Coroutine[Any, Any, Any]) -> Any: ...


class NodeMemory:
    """What `ctx.memory` is: the memory as this node may use it.

    `scope`: "global", "run" (this run only), "thread" (related runs), or another name.
    """

    def __init__(self, memory: MemoryBackend, ctx: MemoryContext, consistency: str) -> None:
        self._memory = memory
        self._ctx = ctx
        self.consistency = consistency

    async def read(self, query: str = "", *, scope: str = "global", limit: int = 10) -> list[Memory]:
        """Traces that have every word of the query: the strongest first, then the newest."""
        where = self._ctx.memory_scope(scope)
        if self.consistency not in RECORDED:
            return await self._memory.read(self._ctx.tenant, where, query, limit)
        ordinal, known = self._ctx.take_recorded(READ)
        if known is None:
            found = await self._memory.read(self._ctx.tenant, where, query, limit)
            kept = FrozenList([_shown(memory) for memory in found])
            known = await self._ctx.record(SubstepBody(ordinal, READ, kept))
        return [self._read_back(trace) for trace in known]

    async def write(
        self,
        content: str,
        *,
        type: str = "episodic",  # noqa: A002
        scope: str = "global",
        strength: float = 1.0,
    ) -> None:
        ordinal, known = self._ctx.take_recorded(WRITE)
        memory = Memory(
            id=self._ctx.trace_id(ordinal),
            tenant=self._ctx.tenant,
            scope=self._ctx.memory_scope(scope),
            type=type,
            content=content,
            strength=strength,
            at=self._ctx.now(),
        )
        if self.consistency == "journaled":
            self._ctx.remember_later(memory)
        elif known is None:
            await self._memory.write(memory)
        if self.consistency in RECORDED and known is None:
            await self._ctx.record(SubstepBody(ordinal, WRITE, _shown(memory)))

    def _read_back(self, trace: Any) -> Memory:
        return Memory(
            id=trace["traceId"],
            tenant=self._ctx.tenant,
            scope=trace["scope"],
            type=trace["type"],
            content=trace["content"],
            strength=trace["strength"],
            at=trace["at"],
        )


def _shown(memory: Memory) -> FrozenDict:
    """As checkpoints show it."""
    return FrozenDict(
        {
            "traceId": memory.id, "type": memory.type, "scope": memory.scope, "content": memory.content,
            "strength": memory.strength, "at": memory.at,
        }
    )  # fmt: skip


class ThreadMemory:
    """The same for a sync handler, called from its thread."""

    def __init__(self, inner: NodeMemory, ctx: ThreadCalls) -> None:
        self._inner = inner
        self._ctx = ctx

    def read(self, *args: Any, **kwargs: Any) -> list[Memory]:
        return self._ctx.from_thread(self._inner.read(*args, **kwargs))

    def write(self, *args: Any, **kwargs: Any) -> None:
        self._ctx.from_thread(self._inner.write(*args, **kwargs))


def trace_id(run: str, scope: str, node: str, visit: int, ordinal: str) -> str:
    return derived_id(run, scope, node, visit, "memory", ordinal)
