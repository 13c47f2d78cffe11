"""Appending to the journal: the one write of a step, with everything that is written with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import BlobMissingError
from holdfast.store import hold_transitions
from holdfast.store.child_runs import cancel_message
from holdfast.store.fence import is_owned
from holdfast.store.hold_transitions import require_findable
from holdfast.store.memory.tables import MemoryTables, check_transition, copy_record
from holdfast.store.queue_rules import changed_message, message_end
from holdfast.telemetry import crashpoint
from holdfast.types.audit import GENESIS, next_row
from holdfast.types.hold import OPEN_ONLY_FIELDS, HoldRow
from holdfast.types.outbox import OutboxRow
from holdfast.types.queue_message import MessageChange, MessageRow
from holdfast.types.record import Park, Refusal, SettleAnswer
from holdfast.types.status import ENDED, HoldStatus, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.store.memory.tables import MemoryRun
    from holdfast.types.audit import AuditRow, NewAudit
    from holdfast.types.hold import NewHold
    from holdfast.types.ids import HoldId
    from holdfast.types.lease import Lease
    from holdfast.types.outbox import OutboxMessage
    from holdfast.types.record import Record, RunBatch, Side, VersionChange


class MemoryRunHolds(MemoryTables):
    def _write_holds(self, run: MemoryRun, side: Side, now: int) -> None:
        for hold in side.holds:
            self._open_hold(run, hold, now)
        for closed in side.close_holds:
            self._close_hold(run, closed.id, closed.status, closed.reason, now)
        for resumed in side.resumed_holds:
            self._resume_hold(run, resumed, now)
        if side.close_all_holds is not None:
            self._close_all_holds(run, side.close_all_holds, now)

    def _open_hold(self, run: MemoryRun, hold: NewHold, now: int) -> None:
        place = (run.key, hold.scope, hold.node, hold.visit, hold.ordinal)
        if hold.id in self._holds or place in self._hold_places:
            return  # the same hold, asked again (CP-17)
        self._hold_places[place] = hold.id
        run.holds.append(hold.id)
        self._hold_numbers[hold.id] = next(self._numbers)
        self._holds[hold.id] = HoldRow(
            run=run.id,
            tenant=run.tenant,
            flow=run.new.flow,
            deployment=run.new.deployment,
            instance_key=run.new.instance_key,
            started_by=run.new.started_by,
            status=HoldStatus.pending,
            version=1,
            updated_at=now,
            **msgspec.structs.asdict(hold),
        )
        self._chain(run.tenant, hold_transitions.opened_entries(hold, run.id, now))
        self._put_message(run.tenant, run.id, hold_transitions.created_message(hold), now)
        self._put_message(run.tenant, run.id, hold_transitions.queue_message(hold, 1), now)

    def _close_all_holds(self, run: MemoryRun, reason: str, now: int) -> None:
        for hold in run.holds:
            self._close_hold(run, hold, HoldStatus.cancelled, reason, now)

    def _close_hold(self, run: MemoryRun, hold: HoldId, status: HoldStatus, reason: str, now: int) -> None:
        row = self._holds.get(hold)
        if row is None or row.run != run.id or row.status is not HoldStatus.pending:
            return
        self._holds[hold] = msgspec.structs.replace(
            row,
            status=status,
            version=row.version + 1,
            closed_reason=reason,
            closed_by=hold_transitions.ENGINE,
            closed_at=now,
            updated_at=now,
            **dict.fromkeys(OPEN_ONLY_FIELDS),
        )
        self._chain(
            run.tenant, [hold_transitions.closed_entry(hold, run.id, now, status=status, reason=reason)]
        )
        message = hold_transitions.withdrawal_message(hold, row.type, row.epoch, status=status)
        self._put_message(run.tenant, run.id, message, now)
        message = hold_transitions.queue_end_message(hold, row.message_id, status)
        self._put_message(run.tenant, run.id, message, now)
        self._end_messages(self._messages_of(hold), status, now)

    def _messages_of(self, hold: HoldId) -> list[MessageRow]:
        return [row for row in self._messages.values() if row.hold == hold]

    def _end_messages(self, rows: Iterable[MessageRow], status: HoldStatus, now: int) -> None:
        """The messages of holds that ended elsewhere end with them (QB-9)."""
        for row in rows:
            ends = MessageChange(tenant=row.tenant, id=row.id, act=message_end(status))
            after = changed_message(row, ends, now)
            if isinstance(after, MessageRow):
                self._messages[row.tenant, row.id] = after

    def _resume_hold(self, run: MemoryRun, hold: HoldId, now: int) -> None:
        row = self._holds.get(hold)
        if row is None or row.run != run.id or row.status is HoldStatus.pending or row.resumed_at is not None:
            return
        self._holds[hold] = msgspec.structs.replace(row, resumed_at=now)

    def _chain(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
        """Each entry contains the hash of the one before it."""
        chain = self._audit.setdefault(tenant, [])
        for entry in entries:
            prev = chain[-1].hash if chain else GENESIS
            chain.append(next_row(tenant, len(chain) + 1, prev, entry))
        return chain[len(chain) - len(entries) :]

    def _put_message(self, tenant: str, run: str | None, message: OutboxMessage | None, now: int) -> None:
        if message is None or (tenant, message.key) in self._outbox_keys:
            return
        row = OutboxRow(
            id=next(self._numbers),
            tenant=tenant,
            run=run,
            hold=message.hold,
            at=now,
            topic=message.topic,
            key=message.key,
            payload=bytes(message.payload),
            due_at=now if message.due_at is None else message.due_at,
        )
        self._outbox_keys.add((tenant, message.key))
        self._outbox[row.id] = row


class MemorySettle(MemoryRunHolds):
    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        return self.settle_now(batches)

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        with self._lock:
            if len(batches) > 1:
                # A wrong transition raises an error: check for it before the first run is written.
                for batch in batches:
                    self._check_batch(batch)
            # The crash point is before the first change: a crash during a settle leaves nothing of it, as on
            # disk.
            crashpoint("inside_settle")
            answers = [self._settle_one(batch) for batch in batches]
        for batch in batches:
            self._wake_queues(batch.records)
        return answers

    def _settle_one(self, batch: RunBatch) -> SettleAnswer:
        lease = batch.lease
        run = self._keys.get(lease.key)
        if run is None or run.id != lease.run:
            return SettleAnswer(lease.run, Refusal.fenced)
        records = batch.records
        answered = run.event_seq + 1
        if records and records[0].seq <= run.head:
            stored = _already_there(run, records)
            if stored is None:
                refusal = Refusal.head_moved if is_owned(lease, run.term, run.worker) else Refusal.fenced
                return SettleAnswer(lease.run, refusal)
            answered = stored.event_from
            records = records[run.head + 1 - stored.seq :]
            if not records:
                return SettleAnswer(lease.run, None, answered, self._parked(run, batch))
        if not is_owned(lease, run.term, run.worker):
            return SettleAnswer(lease.run, Refusal.fenced)
        refusal = self._refusal(run, records)
        if refusal is not None:
            return SettleAnswer(lease.run, refusal)
        self._append(run, records)
        if batch.park is None:
            return SettleAnswer(lease.run, None, answered)
        return SettleAnswer(lease.run, None, answered, self._park(lease, batch.park))

    def _park(self, lease: Lease, how: Park) -> bool:
        """Releases the run, unless a message arrived for it meanwhile (D-29)."""
        run = self._keys.get(lease.key)
        if run is None or not is_owned(lease, run.term, run.worker) or run.inbox_seq != how.inbox_seen:
            return False
        self._set_status(run, how.status, self._now())
        self._release(run)
        if how.status not in ENDED:
            run.ready_at = how.ready_at
            self._queue.push(run)
        return True

    def _parked(self, run: MemoryRun, batch: RunBatch) -> bool:
        """For a range that was settled before: the run may have been parked with it."""
        return batch.park is not None and (run.worker is None or self._park(batch.lease, batch.park))

    def _refusal(self, run: MemoryRun, records: list[Record]) -> Refusal | None:
        """Checks everything that could refuse the range before any of it is written."""
        expected = run.head
        sides: list[Side] = []
        for record in records:
            expected += 1
            if record.seq != expected:
                return Refusal.head_moved
            assert type(record.payload) is bytes, "a buffer could change under the store"
            if record.side is not None:
                sides.append(record.side)
        return self._refusal_of_sides(run, sides) if sides else None

    def _refusal_of_sides(self, run: MemoryRun, sides: list[Side]) -> Refusal | None:
        consumed = [row for side in sides for row in side.inbox_done]
        if len(set(consumed)) != len(consumed) or not all(row in run.inbox for row in consumed):
            return Refusal.inbox_taken
        for message in [message for side in sides for message in side.outbox]:
            require_findable(message)
        if not self._blobs_stand(side.blobs for side in sides):
            return Refusal.put_blobs_again
        _check_statuses(run, sides)
        return None

    def _check_batch(self, batch: RunBatch) -> None:
        run = self._keys.get(batch.lease.key)
        if run is not None and is_owned(batch.lease, run.term, run.worker):
            fresh = [record for record in batch.records if record.seq > run.head]
            self._refusal(run, fresh)

    def _blobs_stand(self, named: Iterable[list[bytes]]) -> bool:
        for digests in named:
            for digest in digests:
                blob = self._blobs.get(digest)
                if blob is None or blob.condemned:
                    return False
        return True

    def _need_blobs(self, run: MemoryRun, sides: list[Side]) -> None:
        if not self._blobs_stand(side.blobs for side in sides):
            raise BlobMissingError(
                f"run {run.id} names a blob that is not stored.",
                hint="Put the blobs before the record that names them.",
                run=run.id,
            )

    def _refer(self, run: MemoryRun, side: Side) -> None:
        for digest in side.blobs:
            run.blobs.add(digest)
            self._blobs[digest].runs.add(run.key)

    def _append(self, run: MemoryRun, records: list[Record]) -> None:
        now = self._now()
        before = number = run.event_seq
        keep = run.records.append
        for given in records:
            record = copy_record(given)
            record.event_from = number + 1
            number += record.events
            side = record.side
            if side is not None:
                record.side = None
                self._write_side(run, side, now)
            keep(record)
        run.head = records[-1].seq
        run.updated_at = now
        if number > before:
            run.event_seq = number
            self._announce(run, before)

    def _append_first(self, run: MemoryRun, records: list[Record]) -> None:
        """The records a run is created with. There is no lease yet, so nothing is refused."""
        sides = [record.side for record in records if record.side is not None]
        self._need_blobs(run, sides)
        _check_statuses(run, sides)
        if records:
            self._append(run, records)

    def _write_side(self, run: MemoryRun, side: Side, now: int) -> None:
        for row in side.inbox_done:
            run.inbox.pop(row, None)
        self._write_timers(run, side)
        self._write_holds(run, side, now)
        for message in side.outbox:
            self._put_message(run.tenant, run.id, message, now)
        self._refer(run, side)
        for memory in side.memories:
            self._remember(memory)
        if side.migrated is not None:
            self._migrate(run, side.migrated)
        if side.error is not None:
            run.error = side.error
        if side.status is not None:
            self._set_status(run, side.status, now)
        if side.status is RunStatus.cancelled:
            self._cancel_children(run, now)

    def _cancel_children(self, run: MemoryRun, now: int) -> None:
        for child in self._keys.values():
            if child.new.parent_run == run.id and child.status not in ENDED:
                self._request_cancel(child, cancel_message(run.id), now)

    def _write_timers(self, run: MemoryRun, side: Side) -> None:
        if side.close_all_timers:
            run.timers.clear()
        for token in side.close_timers:
            run.timers.pop(token, None)
        for timer in side.timers:
            run.timers.setdefault(timer.token, timer.fire_at)

    def _migrate(self, run: MemoryRun, to: VersionChange) -> None:
        run.new = msgspec.structs.replace(run.new, version=to.version, code=to.code)
        run.migrated = to.seq
        for hold, scope, node in to.holds:
            row = self._holds[hold]
            self._hold_places.pop((run.key, row.scope, row.node, row.visit, row.ordinal), None)
            self._hold_places[run.key, scope, node, row.visit, row.ordinal] = hold
            version = row.version + (row.status is HoldStatus.pending)
            self._holds[hold] = msgspec.structs.replace(row, scope=scope, node=node, version=version)


def _check_statuses(run: MemoryRun, sides: list[Side]) -> None:
    status = run.status
    for side in sides:
        if side.status is not None:
            check_transition(run, status, side.status)
            status = side.status


def _already_there(run: MemoryRun, records: list[Record]) -> Record | None:
    """The stored record with the seq of the first one, if all that overlap are the same (D-8)."""
    base = run.horizon
    first = records[0].seq - base
    if first < 0:
        return None
    stored = run.records[first : first + len(records)]
    for old, new in zip(stored, records, strict=False):
        if old.seq != new.seq or old.term != new.term or old.digest != new.digest:
            return None
    return stored[0]
