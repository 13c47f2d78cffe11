"""Threads of other frameworks' graphs: their checkpoints, values, writes and claims."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.memory.tables import MemoryTables
from holdfast.types.graph_thread import GraphClaim, GraphRefusal, GraphThreadRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.types.graph_thread import (
        GraphBatch,
        GraphCheckpointRow,
        GraphClaimRequest,
        GraphCopy,
        GraphDrop,
        GraphExtension,
        GraphFilter,
        GraphValueRow,
        GraphWriteRow,
    )


@dataclass
class MemoryGraphThread:
    tenant: str
    thread: str
    family: int
    created_at: int
    claim: GraphClaim | None = None
    term: int = 0
    checkpoints: dict[tuple[str, str], GraphCheckpointRow] = field(
        default_factory=dict["tuple[str, str]", "GraphCheckpointRow"]
    )
    writes: dict[tuple[str, str, str, int], GraphWriteRow] = field(
        default_factory=dict["tuple[str, str, str, int]", "GraphWriteRow"]
    )
    write_numbers: dict[tuple[str, str, str, int], int] = field(
        default_factory=dict["tuple[str, str, str, int]", int]
    )

    def row(self, found: GraphCheckpointRow) -> GraphCheckpointRow:
        mine = [w for w in self.writes.values() if (w.ns, w.checkpoint) == (found.ns, found.id)]
        ordered = sorted(mine, key=lambda w: (w.path, w.task, w.idx))
        return replace(found, thread=self.thread, writes=tuple(ordered))


class MemoryGraphThreads(MemoryTables):
    async def put_graph_rows(self, batch: GraphBatch) -> GraphRefusal | None:
        with self._lock:
            key = (batch.tenant, batch.thread)
            refused = self._refused(key, batch.claim, fenced=batch.fenced)
            if refused is not None:
                return refused
            thread = self._graph_threads.get(key) or self._new(key)
            fresh = [row for row in batch.checkpoints if not _is_repeat(thread, row)]
            if not all(self._is_of(number, thread.family) for number in batch.needed_values(fresh)):
                return GraphRefusal(missing=True)
            refs = {number for row in fresh for number in row.values}
            values = batch.values if fresh or not batch.checkpoints else ()
            values = tuple(value for value in values if not fresh or value.number in refs)
            if any(value.blob_digest is not None and not self._stands(value.blob_digest) for value in values):
                return GraphRefusal(missing=True)
            self._graph_threads[key] = thread
            for value in values:
                self._graph_values[value.number] = (thread.family, value)
            for row in fresh:
                number = next(self._numbers)
                at = row.written_at or self._now()
                thread.checkpoints[row.ns, row.id] = replace(row, number=number, written_at=at)
            for write in batch.writes:
                place = (write.ns, write.checkpoint, write.task, write.idx)
                if write.idx < 0 or place not in thread.writes:
                    thread.writes[place] = write
                    thread.write_numbers.setdefault(place, next(self._numbers))
            return None

    async def graph_checkpoint(
        self, tenant: str, thread: str, ns: str, checkpoint: str | None = None
    ) -> GraphCheckpointRow | None:
        with self._lock:
            found = self._graph_threads.get((tenant, thread))
            rows = [] if found is None else [r for r in found.checkpoints.values() if r.listed and r.ns == ns]
            chosen = [r for r in rows if checkpoint is None or r.id == checkpoint]
            return None if found is None or not chosen else found.row(max(chosen, key=lambda r: r.id))

    async def graph_checkpoints(
        self, where: GraphFilter, *, after: tuple[str, int] | None = None, limit: int = 100
    ) -> list[GraphCheckpointRow]:
        with self._lock:
            found = [
                thread.row(row)
                for thread in self._graph_threads.values()
                if thread.tenant == where.tenant and where.thread in (None, thread.thread)
                for row in thread.checkpoints.values()
                if _is_wanted(row, where) and (after is None or (row.id, row.number) < after)
            ]
        return sorted(found, key=lambda row: (row.id, row.number), reverse=True)[:limit]

    async def graph_ancestors(
        self, tenant: str, thread: str, ns: str, checkpoint: str, *, limit: int = 100
    ) -> list[GraphCheckpointRow]:
        with self._lock:
            found, line = self._graph_threads.get((tenant, thread)), list["GraphCheckpointRow"]()
            at = None if found is None else found.checkpoints.get((ns, checkpoint))
            while found is not None and at is not None and at.parent is not None and len(line) < limit:
                at = found.checkpoints.get((ns, at.parent))
                line += [] if at is None else [found.row(at)]
            return line

    async def graph_values(self, tenant: str, thread: str, numbers: Sequence[int]) -> list[GraphValueRow]:
        with self._lock:
            found = self._graph_threads.get((tenant, thread))
            if found is None:
                return []
            return [self._graph_values[n][1] for n in self._needed(numbers) if self._is_of(n, found.family)]

    async def graph_threads(
        self, tenant: str, *, thread: str | None = None, after: str = "", limit: int = 100
    ) -> list[GraphThreadRow]:
        with self._lock:
            found = [
                GraphThreadRow(tenant=tenant, thread=t.thread, created_at=t.created_at, claim=t.claim)
                for t in self._graph_threads.values()
                if t.tenant == tenant and t.thread > after and thread in (None, t.thread)
            ]
        return sorted(found, key=lambda row: row.thread)[:limit]

    async def drop_graph_rows(self, drop: GraphDrop) -> GraphRefusal | None:
        with self._lock:
            key = (drop.tenant, drop.thread)
            refused, thread = self._refused(key, drop.claim, fenced=drop.fenced), self._graph_threads.get(key)
            if refused is not None or thread is None:
                return refused
            if drop.places is None:
                del self._graph_threads[key]
            else:
                gone = set(drop.places)
                thread.checkpoints = {at: r for at, r in thread.checkpoints.items() if at not in gone}
                thread.writes = {at: w for at, w in thread.writes.items() if at[:2] not in gone}
                for at in drop.unlisted:
                    if at in thread.checkpoints:
                        thread.checkpoints[at] = replace(thread.checkpoints[at], listed=False)
                if drop.fenced and drop.claim is None:
                    thread.claim = None
            self._collect_graph_values(thread.family)
            return None

    async def copy_graph_thread(self, copy: GraphCopy) -> GraphRefusal | None:
        with self._lock:
            key, target = (copy.tenant, copy.source), (copy.tenant, copy.target)
            refused, source = self._refused(key, copy.claim, fenced=copy.fenced), self._graph_threads.get(key)
            if refused is not None or source is None:
                return refused
            if target in self._graph_threads:
                return GraphRefusal(exists=True)
            made = self._made(target, source.family)
            for at, row in source.checkpoints.items():
                made.checkpoints[at] = replace(row, number=next(self._numbers))
            for at, write in source.writes.items():
                made.writes[at], made.write_numbers[at] = write, next(self._numbers)
            return None

    async def claim_graph_thread(self, want: GraphClaimRequest) -> GraphClaim | GraphRefusal:
        with self._lock:
            key, now = (want.tenant, want.thread), self._now()
            new = key not in self._graph_threads
            thread = self._graph_threads.get(key) or self._made(key)
            current = thread.claim
            same = current is not None and current.owner == want.owner
            if current is not None and current.until > now and not same:
                return GraphRefusal(current)
            thread.term += 0 if same else 1
            thread.claim = GraphClaim(want.owner, thread.term, now + want.ttl)
            return replace(thread.claim, new_thread=new)

    async def extend_graph_claims(self, claims: Sequence[GraphExtension], ttl: int) -> list[bool]:
        with self._lock:
            done: list[bool] = []
            for each in claims:
                thread = self._claimed(each)
                if thread is not None:
                    thread.claim = replace(each.claim, until=self._now() + ttl)
                done.append(thread is not None)
            return done

    async def release_graph_claim(self, claim: GraphExtension) -> bool:
        with self._lock:
            thread = self._claimed(claim)
            if thread is None:
                return False
            thread.claim = None
            if not thread.checkpoints and not thread.writes:
                del self._graph_threads[claim.tenant, claim.thread]
            return True

    # ------------------------------------------------------------------ within the lock
    def _made(self, key: tuple[str, str], family: int | None = None) -> MemoryGraphThread:
        made = self._graph_threads[key] = self._new(key, family)
        return made

    def _new(self, key: tuple[str, str], family: int | None = None) -> MemoryGraphThread:
        return MemoryGraphThread(*key, family or secrets.randbits(62), self._now())

    def _claimed(self, given: GraphExtension) -> MemoryGraphThread | None:
        thread = self._graph_threads.get((given.tenant, given.thread))
        current = None if thread is None else thread.claim
        same = current is not None and (current.owner, current.term) == (given.claim.owner, given.claim.term)
        return thread if same else None

    def _refused(
        self, key: tuple[str, str], given: GraphClaim | None, *, fenced: bool
    ) -> GraphRefusal | None:
        thread = self._graph_threads.get(key)
        current = None if thread is None else thread.claim
        if not fenced:
            return None
        if given is not None:
            same = current is not None and (current.owner, current.term) == (given.owner, given.term)
            return None if same else GraphRefusal(current, lost=True)
        return None if current is None or current.until <= self._now() else GraphRefusal(current)

    def _stands(self, blob: bytes) -> bool:
        return blob in self._blobs and not self._blobs[blob].condemned

    def _is_of(self, number: int, family: int) -> bool:
        return number in self._graph_values and self._graph_values[number][0] == family

    def _needed(self, numbers: Iterable[int]) -> set[int]:
        """These values and all that they are built from."""
        needed: set[int] = set()
        for number in numbers:
            at: int | None = number
            while at is not None and at not in needed and at in self._graph_values:
                needed.add(at)
                at = self._graph_values[at][1].base
        return needed

    def _collect_graph_values(self, family: int) -> None:
        of_family = [t for t in self._graph_threads.values() if t.family == family]
        refs = [n for t in of_family for row in t.checkpoints.values() for n in row.values]
        needed = self._needed(refs)
        for number in [n for n, (of, _) in self._graph_values.items() if of == family and n not in needed]:
            del self._graph_values[number]


def _is_repeat(thread: MemoryGraphThread, row: GraphCheckpointRow) -> bool:
    known = thread.checkpoints.get((row.ns, row.id))
    return known is not None and known.digest == row.digest


def _is_wanted(row: GraphCheckpointRow, where: GraphFilter) -> bool:
    checks: tuple[Callable[[], bool], ...] = (
        lambda: row.listed or where.unlisted,
        lambda: where.ns in (None, row.ns),
        lambda: where.id in (None, row.id),
        lambda: where.before is None or row.id < where.before,
        lambda: not where.run_ids or row.run_id in where.run_ids,
        lambda: where.admits(row.facets),
    )
    return all(check() for check in checks)
