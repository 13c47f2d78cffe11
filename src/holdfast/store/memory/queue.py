"""Which run is claimed next: priority, then fairness between tenants, then the time it became ready."""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.limits import Admission
    from holdfast.store.memory.rows import MemoryRun
    from holdfast.store.protocols import ClaimRequest


class ReadyGroup(NamedTuple):
    """Runs that only their ready time tells apart."""

    priority: int
    tenant: str
    lane: str
    version: str
    gate: str
    starts: bool  # for the first time


class ReadyQueue:
    """One heap a shelf. Taking a run leaves its entry behind; it is skipped when it surfaces."""

    def __init__(self, runs: dict[int, MemoryRun]) -> None:
        self._runs = runs
        self._shelves: dict[ReadyGroup, list[tuple[int, int]]] = {}
        self._running: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._turns = count(1)

    def push(self, run: MemoryRun) -> None:
        if run.ready_at is not None:
            new = run.new
            starts = run.status is RunStatus.pending
            shelf = ReadyGroup(new.priority, run.tenant, new.lane, new.version, run.gate, starts)
            heappush(self._shelves.setdefault(shelf, []), (run.ready_at, run.key))

    def taken(self, tenant: str) -> None:
        self._running[tenant] += 1
        self._served[tenant] = next(self._turns)

    def freed(self, tenant: str) -> None:
        self._running[tenant] -= 1

    def best(self, want: ClaimRequest, now: int, porter: Admission | None = None) -> MemoryRun | None:
        """`porter`: who stands at a shut gate is passed over."""
        chosen: MemoryRun | None = None
        least: tuple[int, int, int, int, int] | None = None
        for shelf in list(self._shelves):
            if want.lanes is not None and shelf.lane not in want.lanes:
                continue
            if not want.serves(shelf.version):
                continue
            first = self._first(shelf)
            if first is None or first[0] > now:
                continue
            if porter is not None and shelf.gate and not porter.passes(shelf.gate, starts=shelf.starts):
                continue
            tenant = shelf.tenant
            rank = (-shelf.priority, self._running[tenant], self._served.get(tenant, 0), *first)
            if least is None or rank < least:
                least, chosen = rank, self._runs[first[1]]
        return chosen

    def _first(self, shelf: ReadyGroup) -> tuple[int, int] | None:
        heap = self._shelves[shelf]
        while heap:
            ready_at, key = heap[0]
            run = self._runs.get(key)
            if (
                run is not None
                and run.worker is None
                and run.ready_at == ready_at
                and run.new.version == shelf.version
                and run.gate == shelf.gate
                and (run.status is RunStatus.pending) == shelf.starts
            ):
                return heap[0]
            heappop(heap)
        del self._shelves[shelf]
        return None
