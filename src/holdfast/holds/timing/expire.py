"""The change of a hold whose deadline has passed. Pure (EX-1 to EX-9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast.holds.actions.audit_entries import ESCALATED, EXPIRED, entry, event, message
from holdfast.holds.actions.close import FREED, cancelled, closed_elsewhere, resolved
from holdfast.holds.timing import deadlines
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.reminders import next_reminder
from holdfast.model.hold_rules import default_of
from holdfast.types import outbox
from holdfast.types.clock import MICROS, iso
from holdfast.types.duration import BusinessDuration
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Assignee, Rung

SYSTEM: Final = "system:expiry"
SWEEP_INTERVAL: Final = 5 * 60 * MICROS
"""Minimum time after an escalation, so that a sweep does not find its own result due again."""


class ExpiryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Results of lookups. `vetoed`: why the default must not be used."""

    assignee: Assignee | None = None
    calendar: Calendar | None = None
    vetoed: str | None = None


def is_due(row: HoldRow, now: int) -> bool:
    """Not while a question asked back is open, nor during an undo window: that decision was made in time."""
    if row.status is not HoldStatus.pending or row.expires_at is None or row.expires_at > now:
        return False
    return row.paused_at is None and row.placed is None


def next_rung(row: HoldRow) -> Rung | None:
    """The next rung; None if the next expiry ends the hold."""
    rungs = deadlines.rungs_of(row)
    if row.expiry_action != "escalate" or row.escalation_count >= len(rungs):
        return None
    return rungs[row.escalation_count]


def final_action(row: HoldRow) -> str | None:
    """The action that ends the hold; None: it expires."""
    return row.terms.final_action if row.expiry_action == "escalate" else row.expiry_action


def expire(row: HoldRow, now: int, ahead: ExpiryFacts) -> HoldChange | None:
    """None if it is not due. `ahead.assignee` is the resolved assignee of `next_rung`, if any."""
    if not is_due(row, now):
        return None
    rung = next_rung(row)
    if rung is not None:
        return _escalated(row, rung, now, ahead)
    action = final_action(row)
    if action == "cancel":
        return cancelled(row, by=SYSTEM, reason="not decided in time", at=now)
    if action == "default_option" and ahead.vetoed is None:
        return resolved(row, _by_default(row), by=SYSTEM, at=now)
    return _expired(row, now, ahead)


def _by_default(row: HoldRow) -> dict[str, Any]:
    return {
        "decision": "default",
        "effective_decision": default_of(row.options, row.terms),
        "response_data": None,
        "comment": None,
        "auto_expired": True,
        "late": False,
        "auth_method": "system",
        "channel": "system",
        "on_behalf_of": None,
        "authority": "expiry",
        "request_hash": row.request_hash,
    }


def _expired(row: HoldRow, now: int, ahead: ExpiryFacts) -> HoldChange:
    """Expired: the flow decides what that means; it is never an approval (EX-8)."""
    reason = f"the default was rejected: {ahead.vetoed}" if ahead.vetoed else "not decided in time"
    fields = {"status": HoldStatus.expired, "closed_by": SYSTEM, "closed_at": now, "closed_reason": reason}
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=now,
        fields={**FREED, **fields},
        audit=(entry(row, SYSTEM, "expired", now, reason=reason),),
        outbox=closed_elsewhere(row, "expired", SYSTEM),
        mail=("lapse", row.id.encode()),
        event=event(row, EXPIRED, now, reason=reason, by=SYSTEM),
    )


def _escalated(row: HoldRow, rung: Rung, now: int, ahead: ExpiryFacts) -> HoldChange:
    """Assigned to the next rung, with a new deadline (EX-6). The new epoch makes older links void."""
    to = ahead.assignee or Assignee("unrouted", reason="the escalation target was not looked up")
    used, epoch = row.escalation_count + 1, row.epoch + 1
    expires_at = _rearmed(row, used, now, ahead.calendar)
    said: dict[str, Any] = {
        "from": _named(row.assignee_type, row.assignee_value),
        "to": str(to),
        "rung": used,
        "expires_at": iso(expires_at),
    }
    if to.reason:
        said["reason"] = to.reason
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
            "reminder_count": 0,
            "remind_at": next_reminder(row, now, ahead.calendar),
            "notification_sent": False,
        },
        audit=(entry(row, SYSTEM, "escalated", now, epoch=epoch, **said),),
        outbox=(message(row, outbox.ESCALATED, epoch=epoch, **said),),
        event=event(row, ESCALATED, now, epoch=epoch, by=SYSTEM, **said),
    )


def _rearmed(row: HoldRow, used: int, now: int, calendar: Calendar | None) -> int:
    length = deadlines.length_at(row, used)
    if length is None or (calendar is None and isinstance(length, BusinessDuration)):
        # Without its calendar the length of the first deadline is used, which is still known.
        first = row.original_timeout or (row.expires_at or now) - row.created_at
        return now + max(SWEEP_INTERVAL, first)
    return max(deadlines.after(now, length, calendar), now + SWEEP_INTERVAL)


def _target_after(row: HoldRow, rungs: Sequence[Rung], used: int) -> str | None:
    """The next rung's target; after the last one it stays, as a record of where the hold went."""
    return rungs[used].to if used < len(rungs) else row.escalation_target


def _named(kind: str, value: str) -> str:
    return f"{kind}:{value}" if value else kind
