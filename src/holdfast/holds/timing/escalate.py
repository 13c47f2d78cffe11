"""The change of a hold that escalates: its deadline has passed, and the next rung is asked. Pure (EX-6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from holdfast.holds.actions.audit_entries import ESCALATED, entry, event, message
from holdfast.holds.timing import deadlines
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.reminders import next_reminder
from holdfast.types import outbox
from holdfast.types.clock import MICROS, iso
from holdfast.types.duration import BusinessDuration
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.terms import Assignee, Rung

SYSTEM: Final = "system:expiry"
SWEEP_INTERVAL: Final = 5 * 60 * MICROS
"""Minimum time after an escalation, so that a sweep does not find its own result due again."""


def next_rung(row: HoldRow) -> Rung | None:
    """The next rung; None if the next expiry ends the hold."""
    rungs = deadlines.rungs_of(row)
    if row.expiry_action != "escalate" or row.escalation_count >= len(rungs):
        return None
    return rungs[row.escalation_count]


def escalate(
    row: HoldRow, rung: Rung, now: int, assignee: Assignee | None, calendar: Calendar | None
) -> HoldChange:
    """Assigned to the rung, with a new deadline (EX-6). The new epoch makes older links void.

    `assignee`: the rung's target, as it was looked up."""
    to = assignee or Assignee("unrouted", reason="the escalation target was not looked up")
    used, epoch = row.escalation_count + 1, row.epoch + 1
    expires_at = _rearmed(row, used, now, calendar)
    facts: dict[str, Any] = {
        "from": _named(row.assignee_type, row.assignee_value),
        "to": str(to),
        "rung": used,
        "expires_at": iso(expires_at),
    }
    if to.reason:
        facts["reason"] = to.reason
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=now,
        fields={
            "assignee": rung.to,
            "assignee_type": to.type,
            "assignee_value": to.value,
            "assignee_reason": to.reason,
            "epoch": epoch,
            "escalation_count": used,
            "escalation_target": _target_after(row, deadlines.rungs_of(row), used),
            "expires_at": expires_at,
            "claimed_by": None,
            "claim_until": None,
            # The new assignee has not been reminded yet; the limit of reminders counts from here.
            "reminder_count": 0,
            "remind_at": next_reminder(row, now, calendar),
            "notification_sent": False,
        },
        audit=(entry(row, SYSTEM, "escalated", now, epoch=epoch, **facts),),
        outbox=(message(row, outbox.ESCALATED, epoch=epoch, **facts),),
        event=event(row, ESCALATED, now, epoch=epoch, by=SYSTEM, **facts),
    )


def _rearmed(row: HoldRow, used: int, now: int, calendar: Calendar | None) -> int:
    length = deadlines.length_at(row, used)
    if length is None or (calendar is None and isinstance(length, BusinessDuration)):
        # Without its calendar the length of the first deadline is used, which is still known.
        first = row.original_timeout or (row.expires_at or now) - row.created_at
        return now + max(SWEEP_INTERVAL, first)
    # From now and not from the old deadline: after an outage of the sweeps several rungs would pass at once.
    return max(deadlines.after(now, length, calendar), now + SWEEP_INTERVAL)


def _target_after(row: HoldRow, rungs: Sequence[Rung], used: int) -> str | None:
    """The next rung's target; after the last one it stays, as a record of where the hold went."""
    return rungs[used].to if used < len(rungs) else row.escalation_target


def _named(kind: str, value: str) -> str:
    return f"{kind}:{value}" if value else kind
