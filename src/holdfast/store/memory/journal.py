"""The journal, the events, the feed and the inbox: read, trimmed and pruned."""

from __future__ import annotations

from bisect import bisect_right
from heapq import merge, nsmallest
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.store.errors import feed_trimmed, require_places
from holdfast.store.memory.settle import MemorySettle
from holdfast.store.memory.tables import MemoryTables, copy_record
from holdfast.telemetry import crashpoint
from holdfast.types.event import EventRow
from holdfast.types.record import Kind, Record
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.memory.tables import MemoryRun
    from holdfast.types.event import EventRow
    from holdfast.types.ids import RunId
    from holdfast.types.record import InboxRow


SELF_CONTAINED = (Kind.created, Kind.snapshot)


class MemoryJournal(MemorySettle):
    async def read(
        self, run: RunId, *, first: int = 0, last: int | None = None, payloads: bool = True
    ) -> list[Record]:
        with self._lock:
            found = self._ids.get(run)
            if found is None:
                return []
            chosen = _between(found, first, last)
        return [_copy(record, payloads) for record in chosen]

    def read_now(self, run: RunId, *, first: int, last: int) -> list[Record]:
        with self._lock:
            found = self._ids.get(run)
            chosen = [] if found is None else _between(found, first, last)
        return [_copy(record, True) for record in chosen]

    async def checkpoint_records(
        self, run: RunId, *, node: str | None = None, before: int | None = None, limit: int = 0
    ) -> list[Record]:
        with self._lock:
            found = self._ids.get(run)
            records = [] if found is None else list(found.records)
        matching = (
            _copy(record, False)
            for record in reversed(records)
            if record.listed
            and (node is None or record.node == node)
            and (before is None or record.seq < before)
        )
        return list(islice(matching, limit if limit > 0 else None))

    async def last_snapshot(self, run: RunId, at_most: int) -> int | None:
        with self._lock:
            found = self._ids.get(run)
            if found is None:
                return None
            for record in reversed(found.records):
                if record.seq <= at_most and record.kind in SELF_CONTAINED:
                    return record.seq
            return None

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Record | EventRow]:
        with self._lock:
            found = self._ids.get(run)
            if found is None:
                return []
            records = found.records[bisect_right(found.records, after, key=_last_number) :]
            others = found.events[bisect_right(found.events, after, key=_last_number) :]
        numbered = (record for record in records if record.events)
        rows = islice(merge(numbered, others, key=_last_number), limit)
        return [_copy(row, True) if isinstance(row, Record) else row for row in rows]

    async def inbox_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        with self._lock:
            return {run: self._ids[run].inbox_seq for run in runs if run in self._ids}

    async def event_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        with self._lock:
            return {run: self._ids[run].event_seq for run in runs if run in self._ids}

    async def feed(self, *, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
        with self._lock:
            if after < self._feed_floor:
                raise feed_trimmed(after, self._feed_floor)
            start = bisect_right(self._feed, after, key=_position)
            return self._feed[start : start + limit]

    async def free_space(self) -> None:
        """Nothing to do: deleted rows use no memory."""

    async def trim_feed(self, *, before: int, limit: int = 5000) -> int:
        with self._lock:
            self._feed_marks.append((self._now(), self._feed_position))
            old = [pos for at, pos in self._feed_marks if at <= before]
            self._feed_floor = max(self._feed_floor, *old, 0)
            self._feed_marks = [mark for mark in self._feed_marks if mark[1] > self._feed_floor]
            gone = min(bisect_right(self._feed, self._feed_floor, key=_position), limit)
            del self._feed[:gone]
            return gone

    async def prune(
        self,
        run: RunId,
        *,
        horizon: int,
        replace: Record | None,
        later: Sequence[Record] = (),
        ended: bool = False,
        blobs: Sequence[bytes] | None = None,
    ) -> int:
        require_places(horizon, replace, later)
        with self._lock:
            found = self._ids.get(run)
            if found is None or not found.horizon <= horizon <= found.head:
                return 0
            if ended and found.status not in ENDED:
                return 0
            crashpoint("inside_prune")
            for record in (*later, *([replace] if replace is not None else ())):
                self._replace(found, record)
            deleted = horizon - found.horizon
            del found.records[:deleted]
            if blobs is not None:
                self._release_blobs(found, found.blobs.difference(blobs))
            return deleted

    def _release_blobs(self, run: MemoryRun, digests: set[bytes]) -> None:
        for digest in digests:
            self._blobs[digest].runs.discard(run.key)
        run.blobs -= digests

    def _replace(self, run: MemoryRun, record: Record) -> None:
        if record.side is not None:
            self._need_blobs(run, [record.side])
            self._refer(run, record.side)
        place = record.seq - run.horizon
        kept = _copy(record, True)
        # Its event numbers were assigned when the record was first written.
        kept.event_from = run.records[place].event_from
        kept.side = None
        run.records[place] = kept


def _between(run: MemoryRun, first: int, last: int | None) -> list[Record]:
    base = run.horizon
    end = None if last is None else max(0, last + 1 - base)
    return run.records[max(0, first - base) : end]


def _copy(record: Record, payload: bool) -> Record:
    copied = copy_record(record)
    copied.size = len(record.payload)
    if not payload:
        copied.payload = b""
    return copied


def _last_number(row: Record | EventRow) -> int:
    return row.number if isinstance(row, EventRow) else row.event_from + row.events - 1


def _position(row: tuple[int, RunId, int, int]) -> int:
    return row[0]


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
            if kind == "resume" and found.status is RunStatus.failed and self._queue.is_occupied(found):
                return False
            if dedupe is not None:
                found.dedupe.add(dedupe)
            now = self._now()
            if found.status is RunStatus.failed:
                self._revive(found, now)
            self._add_inbox(found, kind, payload, now)
            if kind == "cancel":
                self._leave_limit(found)
            self._add_event(found, event)
        self._changes.notify()
        return True

    async def add_events(self, run: RunId, events: Sequence[EventRow]) -> None:
        with self._lock:
            found = self._ids.get(run)
            if found is None:
                return
            for event in events:
                self._add_event(found, event)
        self._changes.notify()

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
            self._changes.notify()
        return len(fired)

    async def next_timer(self) -> int | None:
        with self._lock:
            return min((at for run in self._keys.values() for at in run.timers.values()), default=None)

    async def wake_times(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        with self._lock:
            found = [self._ids[run] for run in runs if run in self._ids]
            return {run.id: min(run.timers.values()) for run in found if run.timers}

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
