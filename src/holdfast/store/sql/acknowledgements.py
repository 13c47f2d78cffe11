"""What was acknowledged here, for as long as a failover could still lose it.

A standby that is not synchronous may be promoted without the last commits. Only the processes that these were
acknowledged to can know. So each store remembers the newest state of the runs that it changed recently, and
after a failover compares it with the new primary before it does anything else there.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.store.rows import NewRun, RunRow
from holdfast.store.sql.connection import Conn
from holdfast.telemetry import log
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId, RunId
from holdfast.types.lease import Lease
from holdfast.types.record import RunBatch, SettleAnswer

MAX_REMEMBERED: Final = 10_000
_AT_ONCE: Final = 1000
_NAMED: Final = 20
_LOOKED_FOR: Final = 3600.0  # seconds

_Newest = tuple[int, int, int, str, int]  # head, the term and instant of that record, the worker, last event


class LossDialect(msgspec.Struct, frozen=True):
    """How a dialect compares with what a server has. `find`: which states it does not have; True: not even
    the run exists. `fence`: raises the terms of claims that were lost. `stop`: stops one run, in a
    transaction."""

    find: Callable[[Any, Sequence[AcknowledgedState]], Awaitable[list[tuple[AcknowledgedState, bool]]]]
    fence: Callable[[Any, Mapping[RunId, int]], Awaitable[None]]
    stop: Callable[[Any, int | None, AcknowledgedState], Awaitable[RunRow | None]]


class Acknowledgements:
    """Written by any loop and thread that uses the store."""

    def __init__(self, dialect: LossDialect, most: int = MAX_REMEMBERED) -> None:
        self.dialect = dialect
        self._most = most
        self._lock = threading.Lock()
        self._runs: OrderedDict[RunId, _Newest] = OrderedDict()
        self._terms: OrderedDict[RunId, int] = OrderedDict()
        self._mail: OrderedDict[RunId, tuple[int, int]] = OrderedDict()
        self._holds: OrderedDict[HoldId, tuple[RunId, int, int]] = OrderedDict()
        # Runs that made progress and were missing after a failover, and until when to look for them.
        self._gone: OrderedDict[RunId, AcknowledgedState] = OrderedDict()
        self._gone_until = 0.0

    # ------------------------------------------------------------------ remembering
    def settled(self, batches: Sequence[RunBatch], answers: Sequence[SettleAnswer]) -> None:
        for batch, answer in zip(batches, answers, strict=True):
            if answer.refusal is None:
                last, lease = batch.records[-1], batch.lease
                events = answer.event_from + sum([record.events for record in batch.records]) - 1
                self._put(self._runs, lease.run, (last.seq, last.term, last.at, lease.worker, events))

    def created(self, new: NewRun) -> None:
        if not new.first:
            return
        last = new.first[-1]
        events = sum(record.events for record in new.first)
        self._put(self._runs, new.id, (last.seq, last.term, last.at, new.claimed_by or "", events))

    def claimed(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            self._put(self._terms, lease.run, lease.term)

    def mailed(self, run: RunId, count: int, at: int) -> None:
        self._put(self._mail, run, (count, at))

    def changed(self, hold: HoldRow) -> None:
        self._put(self._holds, hold.id, (hold.run, hold.version, hold.updated_at))

    def deleted(self, run: RunId) -> None:
        for known in (self._runs, self._terms, self._mail):
            known.pop(run, None)

    def _put(self, known: OrderedDict[Any, Any], key: str, value: Any) -> None:
        """Adds an entry; the least recently used one is dropped. (A plain dict would be slow at finding its
        oldest entry after many deletions.)"""
        with self._lock:
            known[key] = value
            known.move_to_end(key)
            if len(known) > self._most:
                known.popitem(last=False)

    # ------------------------------------------------------------------ after a failover
    async def verify(self, conn: Any, now: Callable[[], int | None]) -> list[AcknowledgedState]:
        """What the primary at `conn` does not have; its runs are stopped, and it is forgotten here."""
        lost: list[AcknowledgedState] = []
        absent: dict[RunId, AcknowledgedState] = {}
        known = self._all()
        for first in range(0, len(known), _AT_ONCE):
            for missing, gone in await self.dialect.find(conn, known[first : first + _AT_ONCE]):
                lost.append(missing)
                if gone:
                    absent.setdefault(missing.run, missing)
                else:
                    log_stopped(await self.dialect.stop(conn, now(), missing))
        _log_missing(list(absent.values()))
        for missing in absent.values():
            if missing.head:
                self._put(self._gone, missing.run, missing)
                self._gone_until = time.monotonic() + _LOOKED_FOR
        await self._fence(conn)
        for missing in lost:
            self.deleted(missing.run)
            if missing.hold is not None:
                self._holds.pop(missing.hold, None)
        return lost

    # ------------------------------------------------------------------ runs that come back from nothing
    def gone(self, run: RunId | None = None) -> list[AcknowledgedState]:
        """That run, or some of all, if they were missing after a failover. A process that creates one again
        under its id (a schedule, a caller that retries) does not know what it did before."""
        if not self._gone or time.monotonic() > self._gone_until:
            return []
        with self._lock:
            if run is not None:
                return [self._gone[run]] if run in self._gone else []
            return list(self._gone.values())[-_AT_ONCE:]

    def returned(
        self, known: Sequence[AcknowledgedState], behind: Sequence[tuple[AcknowledgedState, bool]]
    ) -> list[AcknowledgedState]:
        """Those of the missing runs that exist again without what was acknowledged. Those that have it are
        not looked for any more."""
        missing = {each.run for each, _ in behind}
        for each in known:
            if each.run not in missing:
                self.found(each.run)
        return [each for each, gone in behind if not gone]

    def found(self, run: RunId) -> None:
        self._gone.pop(run, None)

    async def _fence(self, conn: Any) -> None:
        """Other loops may claim meanwhile: only what was fenced is forgotten."""
        with self._lock:
            terms = dict(self._terms)
        await self.dialect.fence(conn, terms)
        with self._lock:
            for run, term in terms.items():
                if self._terms.get(run) == term:
                    del self._terms[run]

    def _all(self) -> list[AcknowledgedState]:
        with self._lock:
            return self._copied()

    def _copied(self) -> list[AcknowledgedState]:
        runs = [
            AcknowledgedState(run=run, head=head, term=term, at=at, worker=worker, events=events)
            for run, (head, term, at, worker, events) in self._runs.items()
        ]
        mail = [
            AcknowledgedState(run=run, head=0, term=0, at=at, mail=count)
            for run, (count, at) in self._mail.items()
        ]
        holds = [
            AcknowledgedState(run=run, head=0, term=0, at=at, hold=hold, version=version)
            for hold, (run, version, at) in self._holds.items()
        ]
        return runs + mail + holds


def log_stopped(row: RunRow | None) -> None:
    if row is not None:
        log.error("run %s stops. %s", row.id, row.error, extra={"run": row.id, "seq": row.head})


async def send_counted(conn: Conn, run: RunId, send: Callable[[Conn], Awaitable[bool]]) -> tuple[bool, int]:
    """Inside a transaction: whether it was sent, and how many messages the run has then."""
    if not await send(conn):
        return False, 0
    found = await conn.row("SELECT inbox_seq FROM @runs WHERE id = ?", run)
    return True, 0 if found is None else found[0]


def _log_missing(absent: Sequence[AcknowledgedState]) -> None:
    """There may be thousands if another process deletes old runs: a few are named, the rest counted."""
    text = "run %s is gone (record %d was acknowledged): lost in a failover, or deleted elsewhere"
    for missing in absent[-_NAMED:]:
        log.error(text, missing.run, missing.head, extra={"run": missing.run})
    if len(absent) > _NAMED:
        log.error("and %d more that were changed here longer ago", len(absent) - _NAMED)
