"""The memory store's tables, its queue of ready runs, and small changes that several methods share.

One lock around each method is its transaction: a method checks everything before it changes anything. Callers
get rows built from these, never the stored ones.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.errors import StoreError
from holdfast.store.change_signal import ChangeSignal
from holdfast.store.queue_rules import concern_queues
from holdfast.store.rows import RunRow
from holdfast.types.clock import SystemClock
from holdfast.types.concurrency_limits import is_entity
from holdfast.types.event import EventRow
from holdfast.types.record import InboxRow, Record
from holdfast.types.status import BEGUN, ENDED, RunStatus, may_follow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.store.limit_admission import Admission, CountedStart
    from holdfast.store.memory.graph_threads import MemoryGraphThread
    from holdfast.store.rows import ClaimRequest, FlowRow, NewRun
    from holdfast.types.audit import AuditRow
    from holdfast.types.clock import Clock
    from holdfast.types.concurrency_limits import LimitRow
    from holdfast.types.document import Document
    from holdfast.types.fleet import Death, WorkerRow
    from holdfast.types.graph_thread import GraphValueRow
    from holdfast.types.hold import HoldRow, Note
    from holdfast.types.ids import HoldId, RunId
    from holdfast.types.memory import Memory
    from holdfast.types.outbox import OutboxRow
    from holdfast.types.projection import Projection
    from holdfast.types.queue_message import MessageRow
    from holdfast.types.schedule import ScheduleRow


HoldPlace = tuple[int, str, str, int, int]
"""(run key, scope, node, visit, ordinal): the identity of a hold (D-28)."""


class MemoryTables:
    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._now = self._clock.now
        self._lock = threading.Lock()
        self._changes = ChangeSignal(self._clock)
        self._queue_changes = ChangeSignal(self._clock)
        self._ids: dict[RunId, MemoryRun] = {}
        self._keys: dict[int, MemoryRun] = {}
        self._leased: dict[int, MemoryRun] = {}
        self._queue = ReadyQueue(self._keys)
        self._by_idempotency: dict[tuple[str, str, str], MemoryRun] = {}
        self._feed: list[tuple[int, RunId, int, int]] = []
        self._feed_position = 0
        self._feed_marks: list[tuple[int, int]] = []  # (instant, the last position of the feed at that time)
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
        self._messages: dict[tuple[str, str], MessageRow] = {}
        self._outbox_keys: set[tuple[str, str]] = set()
        self._blobs: dict[bytes, MemoryBlob] = {}
        self._flows: dict[tuple[str, str], FlowRow] = {}
        self._codes: dict[str, bytes] = {}
        self._graph_threads: dict[tuple[str, str], MemoryGraphThread] = {}
        self._graph_values: dict[int, tuple[int, GraphValueRow]] = {}
        self._memories: dict[tuple[str, str], Memory] = {}
        self._schedules: dict[tuple[str, str], ScheduleRow] = {}
        self._workers: dict[str, WorkerRow] = {}
        self._limits: dict[tuple[str, bool], LimitRow] = {}
        self._limit_starts: dict[str, list[CountedStart]] = {}
        self._opens_at: int | None = None
        self._run_numbers = count(1)
        self._inbox_numbers = count(1)
        self._numbers = count(1)  # of holds, messages and notes

    def now(self) -> int:
        return self._now()

    def _wake_queues(self, records: Sequence[Record]) -> None:
        """After the commit of these records."""
        if concern_queues(records):
            self._queue_changes.notify()

    def _remember(self, memory: Memory) -> None:
        self._memories.setdefault((memory.tenant, memory.id), memory)

    def _announce(self, run: MemoryRun, before: int) -> None:
        """One row of the feed for the events that this transaction added to the run (D-3)."""
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

    def _request_cancel(self, run: MemoryRun, payload: bytes, now: int) -> None:
        """Once, however often it is requested."""
        if "cancel" not in run.dedupe and not run.read_only:
            run.dedupe.add("cancel")
            self._add_inbox(run, "cancel", payload, now)
            self._leave_limit(run)

    def _leave_limit(self, run: MemoryRun) -> None:
        """Cancelling needs no place in a limit: the run must not wait in its queue."""
        if run.limit and run.worker is None:
            run.limit = ""
            self._queue.push(run)

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
            if run.limit:
                self._changes.notify()
        run.worker = None
        run.lease_until = None

    def _is_held(self, run: MemoryRun, now: int) -> bool:
        return run.lease_until is not None and run.lease_until > now

    def _revive(self, run: MemoryRun, now: int) -> None:
        self._set_status(run, RunStatus.resumable, now)
        run.ended_at = None
        run.error = None
        # An operator asked to resume it: the limit on recoveries counts from zero again.
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
            f"run {run.id} is {old}, and cannot become {new}.",
            hint="The table of a run's transitions is in holdfast.types.status.",
            run=run.id,
        )


class ReadyGroup(NamedTuple):
    """Runs that differ only in their ready time."""

    priority: int
    tenant: str
    lane: str
    version: str
    limit: str
    starts: bool  # they start for the first time
    suspect: bool


class ReadyQueue:
    """One heap for each group. Claiming a run leaves its entry behind; `_first` skips it."""

    def __init__(self, runs: dict[int, MemoryRun]) -> None:
        self._runs = runs
        self._groups: dict[ReadyGroup, list[tuple[int, int]]] = {}
        self._running: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._turns = count(1)

    def push(self, run: MemoryRun) -> None:
        if run.ready_at is not None:
            new = run.new
            starts = run.status is RunStatus.pending
            group = ReadyGroup(
                new.priority, run.tenant, new.lane, new.version, run.limit, starts, run.suspect
            )
            heappush(self._groups.setdefault(group, []), (run.ready_at, run.key))

    def taken(self, tenant: str) -> None:
        self._running[tenant] += 1
        self._served[tenant] = next(self._turns)

    def freed(self, tenant: str) -> None:
        self._running[tenant] -= 1

    def best(self, want: ClaimRequest, now: int, admission: Admission | None = None) -> MemoryRun | None:
        """`admission`: runs whose limit is reached are skipped."""
        chosen: MemoryRun | None = None
        least: tuple[int, int, int, int, int] | None = None
        for group in list(self._groups):
            if want.lanes is not None and group.lane not in want.lanes:
                continue
            if not want.serves(group.version) or group.suspect is not want.suspects:
                continue
            first = self._first(group)
            if first is None or first[0] > now:
                continue
            if (
                admission is not None
                and group.limit
                and not (
                    admission.passes(group.limit, starts=group.starts)
                    and self.is_entity_free(self._runs[first[1]])
                )
            ):
                continue
            tenant = group.tenant
            rank = (-group.priority, self._running[tenant], self._served.get(tenant, 0), *first)
            if least is None or rank < least:
                least, chosen = rank, self._runs[first[1]]
        return chosen

    def is_entity_free(self, run: MemoryRun) -> bool:
        """Of a run that has not begun: whether no other run of its entity is live."""
        return run.status is not RunStatus.pending or not self.is_occupied(run)

    def is_occupied(self, run: MemoryRun) -> bool:
        """Whether another run of its entity is live."""
        return is_entity(run.limit) and any(
            live.status in BEGUN and live.entity == run.entity and not live.read_only
            for live in self._runs.values()
        )

    def _first(self, group: ReadyGroup) -> tuple[int, int] | None:
        heap = self._groups[group]
        while heap:
            ready_at, key = heap[0]
            run = self._runs.get(key)
            if (
                run is not None
                and run.worker is None
                and run.ready_at == ready_at
                and run.new.version == group.version
                and run.limit == group.limit
                and (run.status is RunStatus.pending) == group.starts
                and run.suspect is group.suspect
            ):
                return heap[0]
            heappop(heap)
        del self._groups[group]
        return None


# Called for each record written and read: the generic copy.copy() costs four times as much.
copy_record = cast("Callable[[Record], Record]", Record.__copy__)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]


@dataclass(slots=True, eq=False)
class MemoryRun:
    """A run and all that belongs to it."""

    key: int
    new: NewRun
    id: RunId
    tenant: str
    status: RunStatus = RunStatus.pending
    term: int = 0
    worker: str | None = None
    lease_until: int | None = None
    head: int = -1
    event_seq: int = 0
    inbox_seq: int = 0
    ready_at: int | None = None
    superseded_by: RunId | None = None
    updated_at: int = 0
    ended_at: int | None = None
    recoveries: int = 0
    error: str | None = None
    read_only: bool = False
    migrated: int = 0
    dead: bool = False
    suspect: bool = False
    missing_mark: str = ""  # `store.unserved`
    limit: str = ""
    # Contiguous by seq: the record with seq s is records[s - records[0].seq].
    records: list[Record] = field(default_factory=list[Record])
    events: list[EventRow] = field(default_factory=list["EventRow"])
    inbox: dict[int, InboxRow] = field(default_factory=dict[int, "InboxRow"])
    dedupe: set[str] = field(default_factory=set[str])
    projections: dict[int, Projection] = field(default_factory=dict[int, "Projection"])
    timers: dict[str, int] = field(default_factory=dict[str, int])
    holds: list[HoldId] = field(default_factory=list["HoldId"])
    blobs: set[bytes] = field(default_factory=set[bytes])
    late: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    deaths: list[Death] = field(default_factory=list["Death"])

    @property
    def horizon(self) -> int:
        return self.records[0].seq if self.records else 0

    @property
    def entity(self) -> tuple[str, str | None, str | None]:
        return self.tenant, self.new.deployment, self.new.instance_key

    def shown_status(self, at: int | None) -> RunStatus:
        """`at`: a run whose lease has expired by then is interrupted."""
        expired = at is not None and self.lease_until is not None and self.lease_until <= at
        return RunStatus.resumable if expired and self.status is RunStatus.running else self.status

    def row(self) -> RunRow:
        new = self.new
        return RunRow(
            key=self.key,
            id=self.id,
            tenant=self.tenant,
            flow=new.flow,
            version=new.version,
            code=new.code,
            status=self.status,
            lane=new.lane,
            priority=new.priority,
            term=self.term,
            worker=self.worker,
            lease_until=self.lease_until,
            head=self.head,
            event_seq=self.event_seq,
            inbox_seq=self.inbox_seq,
            ready_at=self.ready_at,
            thread=new.thread,
            instance_key=new.instance_key,
            parent_run=new.parent_run,
            forked_from=new.forked_from,
            superseded_by=self.superseded_by,
            created_at=new.created_at,
            updated_at=self.updated_at,
            ended_at=self.ended_at,
            recoveries=self.recoveries,
            error=self.error,
            horizon=self.horizon,
            read_only=self.read_only,
            migrated=self.migrated,
            started_by=new.started_by,
            deployment=new.deployment,
            limit=self.limit,
            dead=self.dead,
            suspect=self.suspect,
        )


@dataclass(slots=True)
class MemoryBlob:
    size: int
    data: bytes | None
    put_at: int
    condemned: bool = False
    runs: set[int] = field(default_factory=set[int])
