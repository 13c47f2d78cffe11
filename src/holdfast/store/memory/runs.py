"""Runs and their leases: created, claimed, released, and taken from workers that stopped heartbeating."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import RunNotFoundError, RunReadOnlyError
from holdfast.store.child_runs import require_open_parent
from holdfast.store.errors import require_idle_entity
from holdfast.store.fence import is_owned
from holdfast.store.hold_transitions import RUN_DELETED_REASON
from holdfast.store.lost_history import LOST_EVENT, loss_event, loss_message
from holdfast.store.memory.concurrency_limits import MemoryLimits
from holdfast.store.memory.settle import MemorySettle
from holdfast.store.memory.tables import MemoryRun, MemoryTables
from holdfast.store.rows import Claim, ThreadRow
from holdfast.types.durability import Durability
from holdfast.types.hold import BREAKPOINT
from holdfast.types.ids import run_prefix
from holdfast.types.lease import Lease
from holdfast.types.outbox import OutboxState
from holdfast.types.record import Park
from holdfast.types.status import ENDED, PARKED, HoldStatus, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.limit_admission import Admission
    from holdfast.store.memory.tables import MemoryRun
    from holdfast.store.rows import Claim, ClaimRequest, NewRun, RunFilter, RunRow
    from holdfast.types.acknowledged import AcknowledgedState
    from holdfast.types.ids import RunId
    from holdfast.types.outbox import OutboxRow


# As `find_runs` promises: enough to show that a short id is ambiguous.
FOUND_AT_MOST = 10


class MemoryRuns(MemorySettle, MemoryLimits):
    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        with self._lock:
            earlier = self._earlier(new)
            if earlier is not None:
                return earlier.row(), False
            parent = None if new.parent_run is None else self._ids.get(new.parent_run)
            if parent is not None:
                require_open_parent(parent.id, parent.status)
            old = self._superseded(new)
            run = self._new_run(new)
            self._append_first(run, new.first)
            run.limit = self._limit_for(new)
            self._add_run(run)
            if new.claimed_by is not None and self._lets_pass(run, self._admission() if run.limit else None):
                run.term, run.status = 1, RunStatus.running
                self._take(run, new.claimed_by, new.lease_until or 0)
            if old is not None:
                self._supersede(old, run)
            row = run.row()
        self._changes.notify()
        self._wake_queues(new.first)
        return row, True

    def _earlier(self, new: NewRun) -> MemoryRun | None:
        if new.idempotency_key is not None:
            earlier = self._by_idempotency.get((new.tenant, new.flow, new.idempotency_key))
            if earlier is not None:
                return earlier
        return self._ids.get(new.id)

    def _superseded(self, new: NewRun) -> MemoryRun | None:
        if new.supersedes is None:
            return None
        old = self._ids.get(new.supersedes)
        if old is None:
            raise RunNotFoundError(f"there is no run {new.supersedes} to supersede.", run=new.supersedes)
        if old.read_only:
            raise RunReadOnlyError(f"run {old.id} is imported history: it cannot be superseded.", run=old.id)
        require_idle_entity(old.id, old.limit, old.lease_until, self._now())
        return old

    def _new_run(self, new: NewRun) -> MemoryRun:
        kept = msgspec.structs.replace(new, first=[])
        run = MemoryRun(next(self._run_numbers), kept, new.id, new.tenant)
        run.ready_at = new.ready_at
        run.updated_at = new.created_at
        return run

    def _add_run(self, run: MemoryRun) -> None:
        self._ids[run.id] = self._keys[run.key] = run
        if run.new.idempotency_key is not None:
            self._by_idempotency[run.tenant, run.new.flow, run.new.idempotency_key] = run
        self._queue.push(run)

    def _supersede(self, old: MemoryRun, by: MemoryRun) -> None:
        old.superseded_by = by.id
        old.term += 1
        self._close_all_holds(old, f"superseded by run {by.id}", self._now())
        old.timers.clear()
        if old.status not in ENDED:
            self._set_status(old, RunStatus.cancelled, self._now())

    async def get_run(self, run: RunId) -> RunRow | None:
        with self._lock:
            found = self._ids.get(run)
            return None if found is None else found.row()

    async def find_runs(self, prefix: str) -> list[RunRow]:
        with self._lock:
            found = sorted(run for run in self._ids if run.startswith(prefix))
            return [self._ids[run].row() for run in found[:FOUND_AT_MOST]]

    async def list_runs(self, where: RunFilter, *, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
        with self._lock:
            found = [run for run in self._keys.values() if self._found(run, where)]
            found.sort(key=_age, reverse=True)
            older = (run for run in found if after is None or _age(run) < after)
            return [run.row() for run, _ in zip(older, range(limit), strict=False)]

    async def count_runs(self, where: RunFilter) -> dict[RunStatus, int]:
        with self._lock:
            found = [run for run in self._keys.values() if self._found(run, where)]
            return dict(Counter(run.shown_status(where.shown_at) for run in found))

    def _found(self, run: MemoryRun, where: RunFilter) -> bool:
        holds = [self._holds[hold] for hold in run.holds] if where.at_breakpoint else []
        if where.at_breakpoint and not any(
            hold.type == BREAKPOINT and hold.status is HoldStatus.pending for hold in holds
        ):
            return False
        return _matches(run, where)

    async def list_threads(
        self, tenant: str, *, after: tuple[int, str] | None, limit: int
    ) -> list[ThreadRow]:
        with self._lock:
            rows = [run.row() for run in self._keys.values() if run.tenant == tenant]
        named = sorted((row for row in rows if row.thread is not None), key=_thread)
        found = [_thread_row(str(thread), list(group)) for thread, group in groupby(named, key=_thread)]
        found.sort(key=_thread_age, reverse=True)
        return [row for row in found if after is None or _thread_age(row) < tuple(after)][:limit]

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        self._changes.mark_checked()
        with self._lock:
            now = self._now()
            admission = self._admission() if self._limits else None
            claims: list[Claim] = []
            if want.run is not None:
                run = self._claimable(want.run, want, now)
                if run is not None and self._lets_pass(run, admission):
                    claims.append(self._claim(run, want, now))
            while want.run is None and len(claims) < want.limit:
                run = self._queue.best(want, now, admission)
                if run is None or not self._lets_pass(run, admission):
                    break
                claims.append(self._claim(run, want, now))
            self._opens_at = None if admission is None else admission.opens_at
            return claims

    def _lets_pass(self, run: MemoryRun, admission: Admission | None) -> bool:
        """Counts the run if its limit admits it. A run whose lease expired still has its place."""
        if admission is None or not run.limit or run.worker is not None:
            return True
        starts = run.status is RunStatus.pending
        if not (admission.passes(run.limit, starts=starts) and self._queue.is_entity_free(run)):
            return False
        self._write_starts(admission.enter(run.limit, starts=starts))
        return True

    def _claimable(self, id: RunId, want: ClaimRequest, now: int) -> MemoryRun | None:  # noqa: A002
        run = self._ids.get(id)
        if run is None or run.read_only or run.status in ENDED or self._is_held(run, now):
            return None
        if not want.serves(run.new.version):
            return None
        return run

    def _claim(self, run: MemoryRun, want: ClaimRequest, now: int) -> Claim:
        since = None if want.run is not None else run.ready_at
        run.term += 1
        run.status = RunStatus.running
        run.suspect = run.suspect and want.suspects
        run.updated_at = now
        self._take(run, want.worker, now + want.ttl)
        return Claim(Lease(run.id, run.key, run.term, want.worker), run.row(), since)

    async def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        return self.extend_now(leases, ttl)

    def extend_now(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        with self._lock:
            until = self._now() + ttl
            return [self._extend(lease, until) for lease in leases]

    def _extend(self, lease: Lease, until: int) -> bool:
        run = self._owned(lease)
        if run is None:
            return False
        run.lease_until = until
        return True

    def _owned(self, lease: Lease) -> MemoryRun | None:
        run = self._keys.get(lease.key)
        if run is None or run.id != lease.run:
            return None
        return run if is_owned(lease, run.term, run.worker) else None

    async def park(self, lease: Lease, *, status: RunStatus, inbox_seen: int, ready_at: int | None) -> bool:
        with self._lock:
            parked = self._park(lease, Park(status, inbox_seen, ready_at))
        if parked and ready_at is not None:
            self._changes.notify()
        return parked

    async def set_idle(self, lease: Lease, *, status: RunStatus) -> bool:
        with self._lock:
            run = self._owned(lease)
            if run is not None:
                self._set_status(run, status, self._now())
        return run is not None

    async def delete_run(self, run: RunId, *, ended: bool = False) -> bool:
        with self._lock:
            found = self._ids.get(run)
            if found is None or self._is_held(found, self._now()):
                return False
            if ended and found.status not in ENDED:
                return False
            self._delete(found)
            return True

    def _delete(self, run: MemoryRun) -> None:
        self._release(run)
        del self._ids[run.id], self._keys[run.key]
        if run.new.idempotency_key is not None:
            del self._by_idempotency[run.tenant, run.new.flow, run.new.idempotency_key]
        self._delete_holds(run)
        for digest in run.blobs:
            self._blobs[digest].runs.discard(run.key)
        self._feed = [row for row in self._feed if row[1] != run.id]

    def _delete_holds(self, run: MemoryRun) -> None:
        """Open holds are closed first, so that what was sent about them is withdrawn and the audit has an
        entry. Messages that were not sent yet are dropped."""
        if not run.holds and not self._outbox:
            return
        for row in [row for row in self._outbox.values() if row.run == run.id]:
            self._drop_message(row)
        self._close_all_holds(run, RUN_DELETED_REASON, self._now())
        for number, row in self._outbox.items():
            if row.run == run.id:
                self._outbox[number] = msgspec.structs.replace(row, run=None)
        for hold in run.holds:
            row = self._holds.pop(hold)
            del self._hold_places[run.key, row.scope, row.node, row.visit, row.ordinal]
            del self._hold_numbers[hold]
            self._notes.pop(hold, None)
        gone = set(run.holds)
        self._hold_keys = {place: d for place, d in self._hold_keys.items() if place[0] not in gone}
        self._hold_links = {jti: hold for jti, hold in self._hold_links.items() if hold not in gone}
        self._messages = {place: row for place, row in self._messages.items() if row.hold not in gone}

    def _drop_message(self, row: OutboxRow) -> None:
        """A message that is being sent is kept without content, for its dispatcher to finish."""
        if row.state is OutboxState.waiting and row.claimed_until is not None:
            emptied = {"run": None, "state": OutboxState.skipped, "payload": b"{}"}
            self._outbox[row.id] = msgspec.structs.replace(row, **emptied)
        else:
            del self._outbox[row.id]
            self._outbox_keys.discard((row.tenant, row.key))


def _thread(row: RunRow) -> str:
    return row.thread or ""


def _thread_age(row: ThreadRow) -> tuple[int, str]:
    return row.last_run_at, row.id


def _thread_row(thread: str, runs: list[RunRow]) -> ThreadRow:
    return ThreadRow(
        id=thread,
        runs=len(runs),
        open_runs=sum(run.status not in ENDED for run in runs),
        pending_input_runs=sum(run.status is RunStatus.pending_input for run in runs),
        created_at=min(run.created_at for run in runs),
        last_run_at=max(run.created_at for run in runs),
        updated_at=max(run.updated_at for run in runs),
    )


def _age(run: MemoryRun) -> tuple[int, int]:
    return run.new.created_at, run.key


def _matches(run: MemoryRun, where: RunFilter) -> bool:
    new = run.new
    return (
        (where.tenant is None or where.tenant == run.tenant)
        and (not where.status or run.shown_status(where.shown_at) in where.status)
        and (where.flow is None or where.flow == new.flow)
        and (where.thread is None or where.thread == new.thread)
        and (where.version is None or where.version == new.version)
        and (where.deployment is None or where.deployment == new.deployment)
        and (where.dead is None or where.dead is (run.dead and not run.read_only))
        and (where.created_after is None or new.created_at > where.created_after)
        and (where.created_before is None or new.created_at < where.created_before)
        and (where.started_by is None or where.started_by == new.started_by)
        and (where.instance_key is None or where.instance_key == new.instance_key)
        and (where.error is None or where.error.lower() in (run.error or "").lower())
        and (where.text is None or _has_text(run, where.text.lower()))
        and (where.parent_run is None or where.parent_run == new.parent_run)
        and (where.forked_from is None or _is_fork(run, where.forked_from))
        and (not where.leased or run.worker is not None)
        and (where.worker is None or run.worker == where.worker)
        and _took(run, where)
    )


def _is_fork(run: MemoryRun, source: str) -> bool:
    return (run.new.forked_from or "").startswith(run_prefix(source))


def _has_text(run: MemoryRun, text: str) -> bool:
    return text in run.new.flow.lower() or run.new.id.startswith(text)


def _took(run: MemoryRun, where: RunFilter) -> bool:
    if where.took_over is None and where.took_under is None:
        return True
    end = run.ended_at or where.shown_at
    if end is None:
        return False
    length = end - run.new.created_at
    return (where.took_over is None or length > where.took_over) and (
        where.took_under is None or length < where.took_under
    )


class MemoryLostHistory(MemoryTables):
    async def lost_history(self, known: AcknowledgedState) -> RunRow | None:
        with self._lock:
            run = self._ids.get(known.run)
            if run is None or run.read_only or self._has(run, known) or _has_loss_event(run, known):
                return None
            now, head = self._now(), run.head
            if run.status in PARKED:
                self._set_status(run, RunStatus.running, now)
            if run.status not in ENDED:
                self._set_status(run, RunStatus.failed, now)
            run.error = loss_message(known, head)
            run.term = max(run.term, known.term) + 1
            run.event_seq = max(run.event_seq, known.events)
            self._add_event(run, loss_event(known, head, now))
            return run.row()

    async def durability(self) -> Durability:
        return Durability()  # gone with its process, by design

    def _has(self, run: MemoryRun, known: AcknowledgedState) -> bool:
        """A record at or below the horizon was pruned or rewritten: it cannot be checked."""
        if run.inbox_seq < known.mail:
            return False
        if known.hold is not None:
            hold = self._holds.get(known.hold)
            if hold is None or hold.version < known.version:
                return False
        if known.head <= run.horizon:
            return True
        if known.head > run.head:
            return False
        record = run.records[known.head - run.horizon]
        return (record.term, record.at) == (known.term, known.at)


def _has_loss_event(run: MemoryRun, known: AcknowledgedState) -> bool:
    return any(event.type == LOST_EVENT and event.at >= known.at for event in run.events)
