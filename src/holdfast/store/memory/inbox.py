"""What others tell a run: messages, timers, answers to its holds, late evidence."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

from holdfast.store.memory.tables import MemoryTables
from holdfast.telemetry import crashpoint
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from holdfast.store.memory.rows import MemoryRun
    from holdfast.types.event import EventRow
    from holdfast.types.ids import RunId
    from holdfast.types.record import InboxRow


class MemoryInbox(MemoryTables):
    async def send(
        self,
        run: RunId,
        kind: str,
        payload: bytes,
        *,
        dedupe: str | None = None,
        event: EventRow | None = None,
    ) -> bool:
        with self._lock:
            found = self._ids.get(run)
            if found is None or dedupe in found.dedupe or not _listens(found, kind):
                return False
            if dedupe is not None:
                found.dedupe.add(dedupe)
            now = self._now()
            if found.status is RunStatus.failed:
                self._revive(found, now)
            self._add_inbox(found, kind, payload, now)
            if kind == "cancel" and found.gate and found.worker is None:
                # To stop needs no room: who is asked to waits in no line.
                found.gate = ""
                self._queue.push(found)
            self._add_event(found, event)
        self._bell.ring()
        return True

    async def pending(self, run: RunId) -> tuple[int, list[InboxRow]]:
        with self._lock:
            found = self._ids.get(run)
            return (0, []) if found is None else (found.inbox_seq, list(found.inbox.values()))

    async def fire_timers(self, *, limit: int, run: RunId | None = None) -> int:
        with self._lock:
            now = self._now()
            runs = self._keys.values() if run is None else filter(None, [self._ids.get(run)])
            due = (
                (at, found.key, token) for found in runs for token, at in found.timers.items() if at <= now
            )
            fired = nsmallest(limit, due)
            for _, key, token in fired:
                del self._keys[key].timers[token]
                self._add_inbox(self._keys[key], "timer", token.encode(), now)
        if fired:
            crashpoint("after_timer_fired")
            self._bell.ring()
        return len(fired)

    async def next_timer(self) -> int | None:
        with self._lock:
            return min((at for run in self._keys.values() for at in run.timers.values()), default=None)

    async def report_late(self, run: RunId, seq: int, payload: bytes) -> None:
        with self._lock:
            found = self._ids.get(run)
            report = (seq, bytes(payload))
            if found is not None and report not in found.late:
                found.late.append(report)

    async def late_reports(self, run: RunId) -> list[tuple[int, bytes]]:
        with self._lock:
            found = self._ids.get(run)
            return [] if found is None else list(found.late)


def _listens(run: MemoryRun, kind: str) -> bool:
    if run.read_only:
        return False
    if run.status is RunStatus.failed:
        return (kind == "resume" or (kind == "cancel" and run.dead)) and run.superseded_by is None
    return run.status not in ENDED
