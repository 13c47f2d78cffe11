"""Written after each attempt: the recipient's state, the audit entry, and the hold's flags."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.holds.actions.audit_entries import entry
from holdfast.holds.notify.channel import Delivery
from holdfast.holds.notify.recipients import SYSTEM, note_of, outcome, recipients_of
from holdfast.holds.timing import reminders
from holdfast.holds.timing.lookups import SweepLookups
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.store.protocols import Store
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.outbox import ASKED_BACK, CLOSED, REMINDED, OutboxRow
from holdfast.types.status import HoldStatus

TRIES: Final = 100


class DeliveryLog:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._scout = SweepLookups(store, Calendars(store))

    async def write(
        self, hold: HoldId, message: OutboxRow, where: tuple[str, str], delivery: Delivery
    ) -> None:
        """All in one transaction. A hold that changed in the meantime is read again; for an ended one only
        the note is written, marked as late."""
        for _ in range(TRIES):
            row = await self.store.hold(hold)
            if row is None:
                return
            change = await self._change(row, message, where, delivery)
            if await self.store.change_hold(change) is not ChangeRefusal.stale:
                return

    async def _change(
        self, row: HoldRow, message: OutboxRow, where: tuple[str, str], delivery: Delivery
    ) -> HoldChange:
        now = self.store.now()
        late = row.status is not HoldStatus.pending and message.topic != CLOSED
        kept = outcome(message.key, message.topic, where, delivery, message.attempts, late=late)
        made = HoldChange(hold=row.id, version=row.version, at=now)
        if delivery.accepted and await self._is_first(row, message):
            made = await self._accepted(row, message, now) or made
        action = "notified" if delivery.accepted else "notification_failed"
        audit = entry(row, SYSTEM, action, now, **_facts(message, where, delivery))
        return msgspec.structs.replace(
            made, audit=(*made.audit, audit), notes=(*made.notes, note_of(row, kept, now))
        )

    async def _is_first(self, row: HoldRow, message: OutboxRow) -> bool:
        """One acceptance sets the flag (NO-3), and a reminder counts once for all recipients."""
        known = await recipients_of(self.store, row.id)
        return not any(each.accepted and each.notice == message.key for each in known)

    async def _accepted(self, row: HoldRow, message: OutboxRow, now: int) -> HoldChange | None:
        """None: the hold has ended, or its assignment has changed since the message."""
        if message.topic == REMINDED:
            ping = reminders.ping_of(message.payload)
            return reminders.accepted(row, ping, now, await self._scout.calendar(row))
        payload: dict[str, Any] = msgspec.json.decode(message.payload)
        open_still = row.status is HoldStatus.pending and payload.get("epoch") == row.epoch
        if not open_still or message.topic in (CLOSED, ASKED_BACK):
            return None
        fields = {"notification_sent": True, "notified_at": now}
        return HoldChange(hold=row.id, version=row.version, at=now, fields=fields)


def _facts(message: OutboxRow, where: tuple[str, str], delivery: Delivery) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "topic": message.topic,
        "channel": where[0],
        "to": where[1],
        "notice": message.key,
    }
    if not delivery.accepted:
        facts |= {"attempt": message.attempts, "retry": delivery.retry, "error": delivery.detail}
    return facts
