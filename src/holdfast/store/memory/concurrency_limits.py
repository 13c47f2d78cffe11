"""Limits: how many runs may be running at once, and how many may start in a period."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.limit_admission import Admission, limit_overview
from holdfast.store.memory.tables import MemoryTables
from holdfast.types.concurrency_limits import flow_limit, flow_of
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.store.limit_admission import CountedStart
    from holdfast.store.rows import NewRun
    from holdfast.types.concurrency_limits import LimitRow


class MemoryLimits(MemoryTables):
    async def put_limit(self, row: LimitRow) -> LimitRow:
        with self._lock:
            stored = self._put_limit_row(row)
        self._changes.notify()
        return stored

    def _put_limit_row(self, limit: LimitRow) -> LimitRow:
        stored = self._limits[limit.name, limit.fixed] = replace(limit, updated_at=self._now())
        flow = flow_of(limit.name)
        if limit.fixed and flow is not None:
            for run in self._keys.values():
                if run.new.flow == flow and not run.limit and not run.read_only and run.status not in ENDED:
                    run.limit = limit.name
                    self._queue.push(run)
        return stored

    async def limits(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[LimitRow, int, int]]:
        with self._lock:
            now = self._now()
            inside = Counter(run.limit for run in self._leased.values() if run.limit)
            waiting = Counter(
                run.limit
                for run in self._keys.values()
                if run.limit and run.worker is None and run.ready_at is not None and run.ready_at <= now
            )
            found = self._limits.values()
            return limit_overview(found, inside, waiting, prefix=prefix, after=after, limit=limit)

    async def drop_limit(self, name: str, *, fixed: bool = True) -> bool:
        with self._lock:
            dropped = self._limits.pop((name, fixed), None) is not None
        self._changes.notify()
        return dropped

    def _limit_for(self, new: NewRun) -> str:
        """The limit of a new run, after writing the limits that its flow declares."""
        for limit in new.limits:
            known = self._limits.get((limit.name, limit.fixed))
            if known is None or replace(known, updated_at=0) != replace(limit, updated_at=0):
                self._put_limit_row(limit)
        own = flow_limit(new.flow)
        return new.limit or (own if (own, True) in self._limits else "")

    def _admission(self) -> Admission:
        admission = Admission(self._limits.values(), self._now())
        for run in self._leased.values():
            if run.limit:
                admission.holds(run.limit)
        for window in admission.windows():
            for name, starts in self._limit_starts.items():
                counted = [start.at for start in starts if start.at > window.since]
                if window.low <= name <= window.high and counted:
                    admission.started(window, name, len(counted), min(counted))
        return admission

    def _write_starts(self, starts: Iterable[CountedStart]) -> None:
        now = self._now()
        for start in starts:
            kept = [one for one in self._limit_starts.get(start.limit, ()) if one.until > now]
            self._limit_starts[start.limit] = [*kept, start]
