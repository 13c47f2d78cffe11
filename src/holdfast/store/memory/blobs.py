"""Rows of blobs, the stored flows, and memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.memory.tables import MemoryBlob, MemoryTables
from holdfast.store.rows import StoreFacts
from holdfast.types.memory import Memory, MemoryFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.rows import FlowRow
    from holdfast.types.ids import RunId


class MemoryBlobs(MemoryTables):
    async def put_blob(self, digest: bytes, size: int, data: bytes | None) -> None:
        with self._lock:
            now = self._now()
            blob = self._blobs.get(digest)
            if blob is None:
                self._blobs[bytes(digest)] = MemoryBlob(size, None if data is None else bytes(data), now)
                return
            # Its age is reset: a record is about to refer to it, so the collector must not take it.
            blob.put_at = now
            blob.condemned = False
            if data is not None:
                blob.data = bytes(data)

    async def blob(self, digest: bytes) -> tuple[int, bytes | None] | None:
        with self._lock:
            blob = self._blobs.get(digest)
            return None if blob is None else (blob.size, blob.data)

    async def keep_blob(self, run: RunId, digest: bytes) -> bool:
        with self._lock:
            blob, owner = self._blobs.get(digest), self._ids.get(run)
            if blob is None or blob.condemned:
                return False
            if owner is not None:
                owner.blobs.add(digest)
                blob.runs.add(owner.key)
            return True

    async def condemn_blobs(self, *, older_than: int, limit: int) -> list[bytes]:
        with self._lock:
            of_values = self._blobs_of_values()
            free = [
                (blob.put_at, digest)
                for digest, blob in self._blobs.items()
                if not blob.runs and digest not in of_values and blob.put_at < older_than
            ]
            chosen = [digest for _, digest in sorted(free)[:limit]]
            for digest in chosen:
                self._blobs[digest].condemned = True
            return chosen

    async def drop_blobs(self, digests: Sequence[bytes]) -> None:
        with self._lock:
            for digest in digests:
                blob = self._blobs.get(digest)
                if blob is not None and blob.condemned:
                    del self._blobs[digest]

    async def put_flow(self, flow: FlowRow) -> None:
        with self._lock:
            self._flows.setdefault((flow.name, flow.version), flow)

    async def flow(self, name: str, version: str) -> FlowRow | None:
        with self._lock:
            return self._flows.get((name, version))

    async def flows(self, since: int = 0, *, graphs: bool = True) -> list[FlowRow]:
        with self._lock:
            found = [row for row in self._flows.values() if row.created_at >= since]
            if not graphs:
                found = [replace(row, graph=b"") for row in found]
            return sorted(found, key=_name_and_age)

    async def examine(self, *, deep: bool) -> StoreFacts:
        with self._lock:
            now = self._now()
            named = {digest for run in self._ids.values() for digest in run.blobs} | self._blobs_of_values()
            return StoreFacts(
                schema=0,
                size=sum(blob.size for blob in self._blobs.values()),
                problems=[],
                lapsed=[run.id for run in self._leased.values() if not self._is_held(run, now)],
                blobs=len(self._blobs),
                condemned=sum(blob.condemned for blob in self._blobs.values()),
                unreferenced=len(self._blobs.keys() - named),
                missing=sorted(named - self._blobs.keys()),
                outside=[d for d, blob in self._blobs.items() if blob.data is None] if deep else [],
            )

    def _blobs_of_values(self) -> set[bytes]:
        return {
            value.blob_digest for _, value in self._graph_values.values() if value.blob_digest is not None
        }

    async def put_code(self, digest: str, marks: bytes) -> None:
        with self._lock:
            self._codes.setdefault(digest, bytes(marks))

    async def code(self, digest: str) -> bytes | None:
        with self._lock:
            return self._codes.get(digest)


def _name_and_age(flow: FlowRow) -> tuple[str, int, str]:
    return flow.name, flow.created_at, flow.version


class MemoryNodeMemories(MemoryTables):
    async def put_memory(self, memory: Memory) -> None:
        with self._lock:
            self._remember(memory)

    async def find_memories(
        self,
        *,
        tenant: str,
        scope: str,
        query: str,
        limit: int,
        types: Sequence[str] = (),
        min_strength: float | None = None,
    ) -> list[Memory]:
        wanted = MemoryFilter(
            tenant=tenant, scope=scope, query=query, types=tuple(types), min_strength=min_strength
        )
        with self._lock:
            found = [m for m in reversed(self._memories.values()) if wanted.admits(m)]
        return sorted(found, key=_weakest_last)[:limit]


def _weakest_last(memory: Memory) -> float:
    return -memory.strength
