"""Memory: what nodes remember beyond one run. Read fresh, or recorded with the run (D-22).

`live`: every read goes to the memory. `snapshot`: what a node read is recorded and returned again on
re-entry. `journaled`: writes are recorded too, and applied once when the node has settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.store.base import Store

if TYPE_CHECKING:
    from holdfast.runs.context import Context


class Trace(msgspec.Struct, frozen=True):
    id: str
    type: str
    content: str
    scope: str
    strength: float = 1.0


class MemoryStore(Protocol):
    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Trace]: ...

    async def write(self, tenant: str, trace: Trace) -> None: ...


class InProcessMemory:
    """Gone with the process; for tests and for flows that need no more."""

    def __init__(self) -> None:
        self._traces: dict[tuple[str, str], dict[str, Trace]] = {}

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Trace]:
        found = [t for t in self._traces.get((tenant, scope), {}).values() if query.lower() in t.content.lower()]
        return sorted(found, key=lambda t: -t.strength)[:limit]

    async def write(self, tenant: str, trace: Trace) -> None:
        self._traces.setdefault((tenant, trace.scope), {})[trace.id] = trace


class StoredMemory(InProcessMemory):
    """Placeholder for the store-backed memory."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store


class NodeMemory:
    """What `ctx.memory` is: the memory as this node may use it."""

    def __init__(self, memory: MemoryStore, ctx: Context) -> None:
        self._memory = memory
        self._ctx = ctx

    async def read(self, query: str = "", *, scope: str = "global", limit: int = 10) -> list[Any]:
        return list(await self._memory.read(self._ctx.tenant, scope, query, limit))

    async def write(self, content: str, *, type: str = "episodic", scope: str = "global") -> None:  # noqa: A002
        await self._memory.write(self._ctx.tenant, Trace(self._ctx.idempotency_key, type, content, scope))
