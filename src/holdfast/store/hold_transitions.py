"""What may change on a hold, and what the row is afterwards: the same rules in every store.

Also what a store writes with a hold when its run opens or closes it: an audit entry and a message, in the
transaction of the run's own record. They contain no content: in an encrypted store, what is taken from the
row (the request's hash, the reason) is encrypted already. Nothing is added when a run resumes from a hold:
the row's own `resumed_at` shows it.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.errors import BlobMissingError, StoreError
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.clock import MICROS
from holdfast.types.hold import UNASKED, ChangeRefusal, HoldChange, HoldRow, NewHold, facts_digest
from holdfast.types.outbox import QUEUE, OutboxMessage
from holdfast.types.status import HoldStatus

ENGINE = "system:engine"
HEAD_START = 35 * MICROS  # a judge has 30 seconds by default
RUN_DELETED_REASON = "the run was deleted"


def opened_entries(hold: NewHold, run: str, now: int) -> list[NewAudit]:
    """The audit entry of an opened hold, with the parts that had no value (TP-3) or could not be
    evaluated."""
    about = {
        "node": hold.node,
        "type": hold.type,
        "assignee": hold.assignee,
        "request_hash": hold.request_hash,
        "expires_at": hold.expires_at,
        "facts": facts_digest(hold),
    }
    created = _entry("created", hold.id, run, now, about)
    if not hold.terms.warnings:
        return [created]
    return [created, _entry("warned", hold.id, run, now, {"missing": list(hold.terms.warnings)})]


def created_message(hold: NewHold) -> OutboxMessage | None:
    """None for a breakpoint: the person who debugs looks for it (BP-8). If a policy may decide, the message
    is sent a little later, so that people are not asked a question that is already answered."""
    if hold.type in UNASKED:
        return None
    about = {"hold": hold.id, "epoch": 1, "type": hold.type, "priority": hold.priority}
    due = hold.created_at + HEAD_START if hold.terms.auto is not None else None
    return OutboxMessage("hold.created", f"{hold.id}:hold.created:1", canonical(about), hold.id, due)


def queue_message(hold: NewHold | HoldRow, number: str | int) -> OutboxMessage | None:
    """Tells the bridge that the message of a hold has to be published, changed or withdrawn. Without content:
    the bridge reads the hold. None: the hold asks in no queue."""
    if hold.terms.queue is None:
        return None
    return OutboxMessage(QUEUE, f"{hold.id}:{QUEUE}:{number}", b"{}", hold.id)


def queue_end_message(hold: str, published: str | None, status: str) -> OutboxMessage | None:
    """Tells the bridge that a hold was closed by its run; None: no message of a queue asks its question."""
    return None if published is None else OutboxMessage(QUEUE, f"{hold}:{QUEUE}:{status}", b"{}", hold)


def change_messages(before: HoldRow, after: HoldRow) -> list[OutboxMessage]:
    """For the bridge, where a change concerns it: another assignee, deadline or priority, or the end."""
    if after.terms.queue is None or _shown_in_queue(after) == _shown_in_queue(before):
        return []
    number = after.version if after.status is HoldStatus.pending else str(after.status)
    found = queue_message(after, number)
    return [] if found is None else [found]


def _shown_in_queue(row: HoldRow) -> tuple[Any, ...]:
    return row.status, row.epoch, row.assignee, row.expires_at, row.priority


def closed_entry(hold: str, run: str, now: int, *, status: str, reason: str) -> NewAudit:
    return _entry(status, hold, run, now, {"reason": reason})


def withdrawal_message(hold: str, kind: str, epoch: int, *, status: str) -> OutboxMessage | None:
    """Closes what was sent about the hold."""
    if kind in UNASKED:
        return None
    about = {"hold": hold, "epoch": epoch, "status": status}
    return OutboxMessage("hold.closed", f"{hold}:hold.closed:{epoch}", canonical(about), hold)


def require_findable(message: OutboxMessage) -> None:
    """Raises StoreError for a message about a hold whose key does not begin with the hold's id: it could not
    be found by it."""
    if message.hold is not None and not message.key.startswith(f"{message.hold}:"):
        raise StoreError(
            f"the key {message.key!r} of a message about the hold {message.hold} does not begin with its id.",
            hint="Begin the key with the hold's id and a colon.",
        )


def _entry(action: str, hold: str, run: str, now: int, data: dict[str, Any]) -> NewAudit:
    return NewAudit(at=now, actor=ENGINE, action=action, hold=hold, run=run, data=canonical(data))


RESUMED = frozenset({"resumed_at"})
CHANGEABLE = RESUMED | {
    "status", "resolution", "resolved_by", "resolved_at", "closed_reason", "closed_by", "closed_at",
    "assignee", "assignee_type", "assignee_value", "assignee_reason", "epoch", "priority", "tags", "terms",
    "expires_at", "expiry_action", "original_timeout", "escalation_target", "escalation_count",
    "reminder_interval", "remind_at", "reminder_count", "notification_sent", "notified_at", "message_id",
    "claimed_by", "claim_until", "placed", "placed_by", "placed_until", "paused_at",
}  # fmt: skip
"""What was asked, and the run and place that asked it, never change (CP-2)."""


def require_changeable(change: HoldChange) -> None:
    """Raises StoreError: it is a mistake of the caller."""
    if not change.fields.keys() <= CHANGEABLE:
        fixed = min(change.fields.keys() - CHANGEABLE)
        raise StoreError(f"{fixed!r} of a hold cannot change.", hold=change.hold)
    for message in change.outbox:
        require_findable(message)


def require_blob(digest: bytes, *, standing: bool) -> None:
    """Raises BlobMissingError: a blob must be put before a run can refer to it."""
    if not standing:
        raise BlobMissingError(
            f"the blob {digest.hex()} that a hold refers to is not in the store.",
            hint="Put the blob before the change that names it.",
            digest=digest.hex(),
        )


def refusal_of(row: HoldRow, change: HoldChange) -> ChangeRefusal | None:
    """Why the change cannot be made to this row. A change of no field does not depend on the version."""
    if row.read_only:
        return ChangeRefusal.read_only
    if not change.fields:
        return None
    final = row.status is not HoldStatus.pending
    if row.version != change.version or (final and not _only_resumes(row, change)):
        return ChangeRefusal.stale
    return None


def _only_resumes(row: HoldRow, change: HoldChange) -> bool:
    return change.fields.keys() == RESUMED and row.resumed_at is None


def changed_row(row: HoldRow, change: HoldChange, now: int) -> HoldRow:
    """Raises StoreError for an incomplete outcome (CP-14)."""
    if not change.fields:
        return row
    if row.status is not HoldStatus.pending:
        return replace(row, **change.fields)
    after = replace(row, **change.fields, version=row.version + 1, updated_at=now)
    outcome = (after.resolution, after.resolved_by, after.resolved_at)
    if any((part is not None) != (after.status is HoldStatus.resolved) for part in outcome):
        raise StoreError(
            f"the hold {row.id} would be {after.status} with an incomplete decision.",
            hint="resolution, resolved_by and resolved_at are set with the status resolved, and only then.",
            hold=row.id,
        )
    return after
