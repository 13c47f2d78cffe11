"""Memory: what nodes remember beyond one run, and how much of that a run records (D-22).

`live`: every read and write uses the memory. `snapshot`: what a node read and wrote is recorded; on re-entry
it is returned from the record. `journaled`: as snapshot, and writes are pending until the node has settled:
with the store's own memory they are written in the transaction of that settle, so exactly once or not at all.
In each of them a run reads what it wrote itself, also before that is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from holdfast.model.record_bodies import SubstepBody
from holdfast.store.protocols import Memories
from holdfast.types.ids import derived_id
from holdfast.types.memory import Memory, MemoryFilter
from holdfast.types.value import FrozenDict, FrozenList

Embed = Callable[[list[str]], Awaitable[Sequence[Sequence[float]]]]
"""One vector for each text, all of one length."""
READ, WRITE = "memory.read", "memory.write"
RECORDED = frozenset({"snapshot", "journaled"})


class MemoryBackend(Protocol):
    """Any memory. Writing a trace twice under one id must change nothing."""

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Memory]: ...

    async def write(self, memory: Memory) -> None: ...


@runtime_checkable
class FilteringMemory(Protocol):
    """A memory that filters itself. Of another one, memories are read and filtered afterwards. `own`: what
    the run wrote and the memory does not have yet, to be found with the rest."""

    async def find(self, wanted: MemoryFilter, own: Sequence[Memory] = ()) -> list[Memory]: ...


MOST = 5000
"""Memories that are compared for likeness, or read from a memory that does not filter: the strongest ones."""


async def select(
    found: Iterable[Memory], own: Sequence[Memory], wanted: MemoryFilter, embed: Embed | None = None
) -> list[Memory]:
    """Those that the filter admits, in its order; `found` newest first."""
    each = {memory.id: memory for memory in (*reversed(own), *found)}
    admitted = sorted(filter(wanted.admits, each.values()), key=_strongest_first)
    if wanted.semantic:
        from holdfast.runs.text_similarity import likeness

        alike = await likeness(wanted.semantic, [memory.content for memory in admitted], embed)
        ranked = sorted(zip(alike, admitted, strict=True), key=lambda pair: -pair[0])
        admitted = [memory for like, memory in ranked if like > 0]
    return admitted[: wanted.limit]


def _strongest_first(memory: Memory) -> float:
    return -memory.strength


class InProcessMemory:
    """Lost with the process; for tests and for flows that need no more. `embed`: what makes vectors of texts,
    for semantic queries."""

    def __init__(self, embed: Embed | None = None) -> None:
        self._traces: dict[tuple[str, str], Memory] = {}
        self._embed = embed

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        return await self.find(MemoryFilter(tenant=tenant, scope=scope, query=query, limit=limit))

    async def find(self, wanted: MemoryFilter, own: Sequence[Memory] = ()) -> list[Memory]:
        return await select(reversed(self._traces.values()), own, wanted, self._embed)

    async def write(self, memory: Memory) -> None:
        self._traces.setdefault((memory.tenant, memory.id), memory)


class StoredMemory:
    """In the store that keeps the runs."""

    def __init__(self, store: Memories, embed: Embed | None = None) -> None:
        self.store = store
        self._embed = embed

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        return await self.store.find_memories(tenant=tenant, scope=scope, query=query, limit=limit)

    async def find(self, wanted: MemoryFilter, own: Sequence[Memory] = ()) -> list[Memory]:
        found = await self.store.find_memories(
            tenant=wanted.tenant,
            scope=wanted.scope,
            query=wanted.query,
            types=wanted.types,
            min_strength=wanted.min_strength,
            limit=MOST if wanted.semantic else wanted.limit,
        )
        return await select(found, own, wanted, self._embed)

    async def write(self, memory: Memory) -> None:
        await self.store.put_memory(memory)


async def find_memories(
    memory: MemoryBackend, wanted: MemoryFilter, own: Sequence[Memory] = ()
) -> list[Memory]:
    if isinstance(memory, FilteringMemory):
        return await memory.find(wanted, own)
    limit = wanted.limit if wanted.plain else MOST
    found = await memory.read(wanted.tenant, wanted.scope, wanted.query, limit)
    # Its own order and idea of a query count, where nothing has to be added or filtered.
    return found if wanted.plain and not own else await select(found, own, wanted)


class MemoryContext(Protocol):
    """What a node's memory needs of the context of its handler."""

    @property
    def tenant(self) -> str: ...

    def memory_scope(self, scope: str) -> str: ...

    def take_recorded(self, name: str) -> tuple[str, Any]: ...

    async def record(self, body: SubstepBody) -> Any: ...

    def remember_later(self, memory: Memory) -> None: ...

    def own_writes(self) -> list[Memory]:
        """What the run wrote and the memory does not have yet, oldest first."""
        ...

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

    async def read(
        self,
        query: str = "",
        *,
        scope: str = "global",
        types: Sequence[str] = (),
        min_strength: float | None = None,
        semantic: str = "",
        limit: int = 10,
    ) -> list[Memory]:
        """Traces that have every word of the query: the strongest first, then the newest. `types`: only of
        these types; `min_strength`: only as strong as this; `semantic`: those most like this text first."""
        wanted = MemoryFilter(
            tenant=self._ctx.tenant,
            scope=self._ctx.memory_scope(scope),
            query=query,
            types=(types,) if isinstance(types, str) else tuple(types),
            min_strength=min_strength,
            semantic=semantic,
            limit=limit,
        )
        if self.consistency not in RECORDED:
            return await find_memories(self._memory, wanted, self._ctx.own_writes())
        ordinal, known = self._ctx.take_recorded(READ)
        if known is None:
            found = await find_memories(self._memory, wanted, self._ctx.own_writes())
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
