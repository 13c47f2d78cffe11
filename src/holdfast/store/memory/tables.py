"""The memory store's tables and the small changes that several of its methods share.

One lock around each method is its transaction: a method checks everything before it changes anything.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING

from holdfast.errors import StoreError
from holdfast.store.memory.queue import ReadyQueue
from holdfast.store.memory.wake import MemoryChangeSignal
from holdfast.types.clock import SystemClock
from holdfast.types.event import EventRow
from holdfast.types.record import InboxRow
from holdfast.types.status import ENDED, RunStatus, may_follow

if TYPE_CHECKING:
    from holdfast.store.limits import CountedStart
    from holdfast.store.memory.rows import MemoryBlob, MemoryRun
    from holdfast.store.protocols import FlowRow
    from holdfast.types.audit import AuditRow
    from holdfast.types.clock import Clock
    from holdfast.types.document import Document
    from holdfast.types.fleet import WorkerRow
    from holdfast.types.hold import HoldRow, Note
    from holdfast.types.ids import HoldId, RunId
    from holdfast.types.limit_rows import LimitRow
    from holdfast.types.memory import Memory
    from holdfast.types.outbox import OutboxRow
    from holdfast.types.schedule import ScheduleRow

HoldPlace = tuple[int, str, str, int, int]
"""(run key, scope, node, visit, ordinal): what makes a hold the same hold (D-28)."""


class MemoryTables:
    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._now = self._clock.now
        self._lock = threading.Lock()
        self._bell = MemoryChangeSignal(self._clock)
        self._ids: dict[RunId, MemoryRun] = {}
        self._keys: dict[int, MemoryRun] = {}
        self._leased: dict[int, MemoryRun] = {}
        self._queue = ReadyQueue(self._keys)
        self._by_idempotency: dict[tuple[str, str, str], MemoryRun] = {}
        self._feed: list[tuple[int, RunId, int, int]] = []
        self._feed_position = 0
        self._feed_marks: list[tuple[int, int]] = []  # (instant, the position that the feed had come to)
        self._feed_floor = 0
        self._projected = 0
        self._holds: dict[HoldId, HoldRow] = {}
        self._hold_places: dict[HoldPlace, HoldId] = {}
        self._hold_numbers: dict[HoldId, int] = {}
        self._hold_keys: dict[tuple[HoldId, str, str], str] = {}
        self._hold_links: dict[str, HoldId] = {}
        self._notes: dict[HoldId, dict[tuple[str, str], Note]] = {}
        self._documents: dict[tuple[str, str, str], Document] = {}
        self._audit: dict[str, list[AuditRow]] = {}
        self._outbox: dict[int, OutboxRow] = {}
        self._outbox_keys: set[tuple[str, str]] = set()
        self._blobs: dict[bytes, MemoryBlob] = {}
        self._flows: dict[tuple[str, str], FlowRow] = {}
        self._codes: dict[str, bytes] = {}
        self._memories: dict[tuple[str, str], Memory] = {}
        self._schedules: dict[tuple[str, str], ScheduleRow] = {}
        self._workers: dict[str, WorkerRow] = {}
        self._gates: dict[tuple[str, bool], LimitRow] = {}
        self._gate_starts: dict[str, list[CountedStart]] = {}
        self._opens_at: int | None = None
        self._run_numbers = count(1)
        self._inbox_numbers = count(1)
        self._numbers = count(1)  # of holds, messages and notes

    def now(self) -> int:
        return self._now()

    def _remember(self, memory: Memory) -> None:
        self._memories.setdefault((memory.tenant, memory.id), memory)

    def _announce(self, run: MemoryRun, before: int) -> None:
        """One row of the feed for what this transaction added to the run (D-3)."""
        if run.event_seq > before:
            self._feed_position += 1
            self._feed.append((self._feed_position, run.id, before + 1, run.event_seq))

    def _add_event(self, run: MemoryRun, event: EventRow | None) -> None:
        if event is not None:
            run.event_seq += 1
            run.events.append(EventRow(run.event_seq, event.at, event.type, bytes(event.payload)))
            self._announce(run, run.event_seq - 1)

    def _add_inbox(self, run: MemoryRun, kind: str, payload: bytes, now: int) -> None:
        row = InboxRow(next(self._inbox_numbers), kind, now, bytes(payload))
        run.inbox[row.id] = row
        run.inbox_seq += 1
        run.updated_at = now
        self._wake(run, now)

    def _wake(self, run: MemoryRun, now: int) -> None:
        if run.worker is None and run.status not in ENDED and (run.ready_at is None or run.ready_at > now):
            run.ready_at = now
            self._queue.push(run)

    def _take(self, run: MemoryRun, worker: str, until: int) -> None:
        self._release(run)
        run.worker = worker
        run.lease_until = until
        run.ready_at = None
        self._leased[run.key] = run
        self._queue.taken(run.tenant)

    def _release(self, run: MemoryRun) -> None:
        if self._leased.pop(run.key, None) is not None:
            self._queue.freed(run.tenant)
            if run.gate:
                self._bell.ring()
        run.worker = None
        run.lease_until = None

    def _is_held(self, run: MemoryRun, now: int) -> bool:
        return run.lease_until is not None and run.lease_until > now

    def _revive(self, run: MemoryRun, now: int) -> None:
        self._set_status(run, RunStatus.resumable, now)
        run.ended_at = None
        run.error = None
        # Somebody looked at it and asked to go on: the bound on recoveries counts anew.
        run.recoveries = 0
        run.dead = False

    def _set_status(self, run: MemoryRun, status: RunStatus, now: int) -> None:
        check_transition(run, run.status, status)
        run.status = status
        run.updated_at = now
        if status in ENDED:
            self._release(run)
            run.ready_at = None
            run.ended_at = now


def check_transition(run: MemoryRun, old: RunStatus, new: RunStatus) -> None:
    if not may_follow(old, new):
        raise StoreError(
            f"Run {run.id} is {old}, and {new} may not follow it.",
            hint="The table of a run's transitions is in holdfast.types.status.",
            run=run.id,
        )
