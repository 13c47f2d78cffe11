"""Holds that a run opens, closes and goes on from: the row, its audit entry and its message, together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.store import hold_rules
from holdfast.store.memory.tables import MemoryTables
from holdfast.types.audit import GENESIS, next_row
from holdfast.types.hold import OPEN_ONLY_FIELDS, HoldRow
from holdfast.types.outbox import OutboxRow
from holdfast.types.status import HoldStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.memory.rows import MemoryRun
    from holdfast.types.audit import AuditRow, NewAudit
    from holdfast.types.hold import NewHold
    from holdfast.types.ids import HoldId
    from holdfast.types.outbox import OutboxMessage
    from holdfast.types.record import Side


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
        self._chain(run.tenant, hold_rules.opened_entries(hold, run.id, now))
        self._tell(run.tenant, run.id, hold_rules.created_message(hold), now)

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
            closed_by=hold_rules.ENGINE,
            closed_at=now,
            updated_at=now,
            **dict.fromkeys(OPEN_ONLY_FIELDS),
        )
        self._chain(run.tenant, [hold_rules.closed_entry(hold, run.id, now, status=status, reason=reason)])
        message = hold_rules.withdrawal_message(hold, row.type, row.epoch, status=status)
        self._tell(run.tenant, run.id, message, now)

    def _resume_hold(self, run: MemoryRun, hold: HoldId, now: int) -> None:
        row = self._holds.get(hold)
        if row is None or row.run != run.id or row.status is HoldStatus.pending or row.resumed_at is not None:
            return
        self._holds[hold] = msgspec.structs.replace(row, resumed_at=now)

    def _chain(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
        """The entries, each bound to the one before it."""
        chain = self._audit.setdefault(tenant, [])
        for entry in entries:
            prev = chain[-1].hash if chain else GENESIS
            chain.append(next_row(tenant, len(chain) + 1, prev, entry))
        return chain[len(chain) - len(entries) :]

    def _tell(self, tenant: str, run: str | None, message: OutboxMessage | None, now: int) -> None:
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
