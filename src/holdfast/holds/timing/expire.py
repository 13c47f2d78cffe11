"""The change of a hold whose deadline has passed. Pure (EX-1 to EX-9)."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.holds.actions.audit_entries import EXPIRED, entry, event
from holdfast.holds.actions.close import FREED, cancelled, closed_elsewhere, resolved
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.escalate import SYSTEM, escalate, next_rung
from holdfast.model.hold_declaration import default_of
from holdfast.types.hold import NO_HEARTBEAT, HoldChange, HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Assignee


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


def final_action(row: HoldRow) -> str | None:
    """The action that ends the hold; None: it expires."""
    return row.terms.final_action if row.expiry_action == "escalate" else row.expiry_action


def expire(row: HoldRow, now: int, ahead: ExpiryFacts) -> HoldChange | None:
    """None if it is not due. `ahead.assignee` is the resolved assignee of `next_rung`, if any."""
    if not is_due(row, now):
        return None
    # Before the final action: as long as there is a rung,
    # the deadline has only passed for the present assignee.
    rung = next_rung(row)
    if rung is not None:
        return escalate(row, rung, now, ahead.assignee, ahead.calendar)
    action = final_action(row)
    if action == "cancel":
        return cancelled(row, by=SYSTEM, reason="not decided in time", at=now)
    # A vetoed default becomes an expiry: without an answer
    # that refuses there is nothing else to turn it into.
    if action == "default_option" and ahead.vetoed is None:
        return resolved(row, _by_default(row), by=SYSTEM, at=now)
    return _expired(row, now, ahead)


def _by_default(row: HoldRow) -> dict[str, Any]:
    behind = {"took_part": list(row.terms.deadline_by)} if row.terms.deadline_by else {}
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
        **behind,
    }


def _expired(row: HoldRow, now: int, ahead: ExpiryFacts) -> HoldChange:
    """Expired: the flow decides what that means; it is never an approval (EX-8)."""
    reason = f"the default was rejected: {ahead.vetoed}" if ahead.vetoed else "not decided in time"
    if row.terms.heartbeat is not None and row.expires_at != row.time_limit:
        reason = NO_HEARTBEAT
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
