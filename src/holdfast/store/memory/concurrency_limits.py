"""Gates: how many runs may be under way at once, and how many may start in a while."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.concurrency_limits import Admission, limit_overview
from holdfast.store.memory.tables import MemoryTables
from holdfast.types.concurrency_limits import flow_limit, flow_of
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.store.concurrency_limits import CountedStart
    from holdfast.store.rows import NewRun
    from holdfast.types.concurrency_limits import LimitRow


class MemoryLimits(MemoryTables):
    async def put_limit(self, gate: LimitRow) -> LimitRow:
        with self._lock:
            stored = self._put_gate(gate)
        self._bell.ring()
        return stored

    def _put_gate(self, gate: LimitRow) -> LimitRow:
        stored = self._gates[gate.name, gate.fixed] = replace(gate, updated_at=self._now())
        flow = flow_of(gate.name)
        if gate.fixed and flow is not None:
            for run in self._keys.values():
                if run.new.flow == flow and not run.gate and not run.read_only and run.status not in ENDED:
                    run.gate = gate.name
                    self._queue.push(run)
        return stored

    async def gates(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[LimitRow, int, int]]:
        with self._lock:
            now = self._now()
            inside = Counter(run.gate for run in self._leased.values() if run.gate)
            waiting = Counter(
                run.gate
                for run in self._keys.values()
                if run.gate and run.worker is None and run.ready_at is not None and run.ready_at <= now
            )
            found = self._gates.values()
            return limit_overview(found, inside, waiting, prefix=prefix, after=after, limit=limit)

    async def drop_limit(self, name: str, *, fixed: bool = True) -> bool:
        with self._lock:
            dropped = self._gates.pop((name, fixed), None) is not None
        self._bell.ring()
        return dropped

    def _gate_for(self, new: NewRun) -> str:
        """Where a new run stands, after what its flow declares was written."""
        for gate in new.gates:
            known = self._gates.get((gate.name, gate.fixed))
            if known is None or replace(known, updated_at=0) != replace(gate, updated_at=0):
                self._put_gate(gate)
        own = flow_limit(new.flow)
        return new.gate or (own if (own, True) in self._gates else "")

    def _admission(self) -> Admission:
        admission = Admission(self._gates.values(), self._now())
        for run in self._leased.values():
            if run.gate:
                admission.holds(run.gate)
        for window in admission.windows():
            for name, starts in self._gate_starts.items():
                counted = [start.at for start in starts if start.at > window.since]
                if window.low <= name <= window.high and counted:
                    admission.started(window, name, len(counted), min(counted))
        return admission

    def _write_starts(self, starts: Iterable[CountedStart]) -> None:
        now = self._now()
        for start in starts:
            kept = [one for one in self._gate_starts.get(start.gate, ()) if one.until > now]
            self._gate_starts[start.gate] = [*kept, start]
