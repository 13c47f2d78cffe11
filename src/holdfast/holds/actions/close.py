"""The end of a hold as one change of its row: with a decision, or without one. Pure."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.holds.actions.audit_entries import CANCELLED, RESOLVED, entry, event, message
from holdfast.holds.permissions.assignees import person_key
from holdfast.types.clock import iso
from holdfast.types.hold import OPEN_ONLY_FIELDS, UNASKED, HoldChange, HoldRow
from holdfast.types.outbox import CLOSED, OutboxMessage
from holdfast.types.status import HoldStatus

FREED: Final[dict[str, Any]] = dict.fromkeys(OPEN_ONLY_FIELDS)
_AUDITED = (
    "decision",
    "effective_decision",
    "decided_by",
    "confidence",
    "authority",
    "channel",
    "auth_method",
    "on_behalf_of",
    "override_reason",
    "late",
    "auto_expired",
    "request_hash",
    "members",
    "chain",
    "took_part",
)


def resolved(row: HoldRow, resolution: dict[str, Any], *, by: str, at: int) -> HoldChange:
    """The resolved row, the audit entry, the message to the run: all in one transaction (RS-2).

    The audit contains the data of the answer only as a digest."""
    kept = msgspec.json.encode({**resolution, "resolved_by": by, "resolved_at": iso(at)})
    known = {name: resolution[name] for name in _AUDITED if resolution.get(name) not in (None, [])}
    fields = {"status": HoldStatus.resolved, "resolution": kept, "resolved_by": by, "resolved_at": at}
    # After a veto of a guardrail the flow sees the refusal; the resolution keeps what the person said.
    decision = resolution.get("effective_decision") or resolution.get("decision")
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=at,
        fields={**FREED, **fields},
        # A digest and not the data: the audit is never deleted, and outlives the run and its answers.
        audit=(entry(row, by, "resolved", at, **known, digest=sha256(kept).hexdigest()),),
        drop_notes=(("draft", person_key(by)),),
        outbox=closed_elsewhere(row, "resolved", by, decision=decision),
        mail=("answer", row.id.encode()),
        event=event(row, RESOLVED, at, decision=decision, by=by),
    )


def cancelled(row: HoldRow, *, by: str, reason: str, at: int) -> HoldChange:
    """The cancelled row, without a decision; the run gets a message (CA-1)."""
    fields = {"status": HoldStatus.cancelled, "closed_by": by, "closed_at": at, "closed_reason": reason}
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=at,
        fields={**FREED, **fields},
        audit=(entry(row, by, "cancelled", at, reason=reason),),
        outbox=closed_elsewhere(row, "cancelled", by),
        mail=("lapse", row.id.encode()),
        event=event(row, CANCELLED, at, reason=reason, by=by),
    )


def closed_elsewhere(row: HoldRow, status: str, by: str, **facts: Any) -> tuple[OutboxMessage, ...]:
    """The message that informs every channel of the hold's end. Breakpoints are never notified (NO-7)."""
    if row.type in UNASKED:
        return ()
    return (message(row, CLOSED, status=status, by=by, **facts),)


def placed_is_due(row: HoldRow, now: int) -> bool:
    return row.placed is not None and row.status is HoldStatus.pending and (row.placed_until or 0) <= now


def placed_decision_change(row: HoldRow, now: int) -> HoldChange:
    """Make a decision whose undo window has passed."""
    placed: dict[str, Any] = msgspec.json.decode(row.placed or b"{}")
    for name in ("credential", "session"):
        placed.pop(name, None)
    return resolved(row, placed, by=row.placed_by or "", at=now)
