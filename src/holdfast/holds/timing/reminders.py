"""Reminders: when one is due, and the change after it was delivered (RE-1 to RE-7). Pure.

A sweep only requests a reminder, with a unique key. It counts when a channel has accepted it: the deliverer
calls `is_wanted` before sending and writes `accepted` after it. A failed reminder changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.holds.actions.audit_entries import REMINDED, entry, event, message
from holdfast.holds.timing.calendars import Calendar
from holdfast.types import outbox
from holdfast.types.clock import MICROS
from holdfast.types.hold import UNASKED, HoldChange, HoldRow, NewHold, Note
from holdfast.types.status import HoldStatus

LEAST_INTERVAL: Final = 15
"""Minimum number of minutes between reminders (RE-1)."""

NOTICES: Final = (outbox.CREATED, outbox.ASSIGNED, outbox.ESCALATED, outbox.REMINDED)
"""Notices of a hold: while one of these is not delivered, no reminder is sent."""

SYSTEM: Final = "system:reminders"
_MINUTE = 60 * MICROS


class Ping(msgspec.Struct, frozen=True):
    """The content of a reminder message: its number, and the epoch of the assignment."""

    hold: str
    epoch: int
    reminder: int


def ping_of(payload: bytes) -> Ping:
    return msgspec.json.decode(payload, type=Ping)


def interval_of(row: NewHold) -> int | None:
    """Microseconds; None: no reminders."""
    if row.reminder_interval is None or row.type in UNASKED:
        return None
    return max(row.reminder_interval, LEAST_INTERVAL) * _MINUTE


def next_reminder(row: NewHold, at: int, calendar: Calendar | None = None) -> int | None:
    """The time of the next reminder after a notice at `at`, outside of quiet hours."""
    interval = interval_of(row)
    if interval is None:
        return None
    return at + interval if calendar is None else calendar.next_after_quiet(at + interval)


def is_wanted(row: HoldRow, ping: Ping, now: int) -> bool:
    """Whether this reminder is still to be sent: same assignment, and no reminder of this number was
    accepted."""
    # Checked when it is sent, because the message may have
    # waited in the outbox while the hold was reassigned.
    if row.epoch != ping.epoch or row.reminder_count + 1 != ping.reminder:
        return False
    return _stands_open(row, now)


def accepted(row: HoldRow, ping: Ping, at: int, calendar: Calendar | None = None) -> HoldChange | None:
    """The change after an accepted reminder (RE-2); None if the row has changed, so that it does not
    count."""
    if row.status is not HoldStatus.pending or row.epoch != ping.epoch:
        return None
    if row.reminder_count + 1 != ping.reminder:
        return None
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=at,
        fields={
            "reminder_count": ping.reminder,
            "notified_at": at,
            "notification_sent": True,
            "remind_at": next_reminder(row, at, calendar),
        },
        audit=(entry(row, SYSTEM, "reminded", at, reminder=ping.reminder, epoch=ping.epoch),),
        event=event(row, REMINDED, at, reminder=ping.reminder, by=SYSTEM),
    )


def remind(
    row: HoldRow,
    now: int,
    *,
    calendar: Calendar | None = None,
    snoozed: Sequence[Note] = (),
    under_way: bool = False,
) -> HoldChange | None:
    """The change of a row whose `remind_at` has passed: request a reminder, postpone it, or stop reminding.

    `under_way`: a notice of this row is not delivered yet. After a long pause of sweeps there is one reminder
    (RE-3), and a reminder during a snooze or quiet hours waits for their end (RE-4)."""
    if row.status is not HoldStatus.pending or row.remind_at is None or row.remind_at > now:
        return None
    later = next_reminder(row, now, calendar)
    if later is None or _had_all(row):
        return _put_off(row, now, None)
    due = _due_at(row, now, calendar, snoozed)
    if due > now:
        return _put_off(row, now, due)
    # While a notice is not delivered, a reminder would only add to the
    # queue: after an outage there is then one message and not several.
    if under_way or not _stands_open(row, now):
        return _put_off(row, now, later)
    return _asked(row, now, later)


def _had_all(row: HoldRow) -> bool:
    most = row.terms.max_reminders
    return most is not None and row.reminder_count >= most


def _stands_open(row: HoldRow, now: int) -> bool:
    """No reminders while a question asked back is open, or after the deadline."""
    if row.status is not HoldStatus.pending or row.paused_at is not None:
        return False
    return row.expires_at is None or row.expires_at > now


def _due_at(row: HoldRow, now: int, calendar: Calendar | None, snoozed: Sequence[Note]) -> int:
    """The interval counts from the last notice, or from the opening (RE-1)."""
    since = row.notified_at if row.notified_at is not None else row.created_at
    # From the last accepted notice: a notice that took hours
    # to deliver must not be followed by a reminder at once.
    due = max(now, since + (interval_of(row) or 0), *(note.until or 0 for note in snoozed))
    return due if calendar is None else calendar.next_after_quiet(due)


def _put_off(row: HoldRow, now: int, until: int | None) -> HoldChange:
    return HoldChange(hold=row.id, version=row.version, at=now, fields={"remind_at": until})


def _asked(row: HoldRow, now: int, later: int) -> HoldChange:
    number = row.reminder_count + 1
    # The number contains `remind_at`: two sweeps write the same reminder once, and one that was given up does
    # not block the next.
    asked = message(row, outbox.REMINDED, number=f"{number}:{row.remind_at}", reminder=number)
    return HoldChange(hold=row.id, version=row.version, at=now, fields={"remind_at": later}, outbox=(asked,))
