"""What may change on a hold, and what the row is afterwards: the same rules in every store."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.errors import BlobMissingError, StoreError
from holdfast.store.hold_rules__consequences import demand_findable
from holdfast.types.hold import HoldChange, HoldRow, Unchanged
from holdfast.types.status import HoldStatus

RESUMED = frozenset({"resumed_at"})
CHANGEABLE = RESUMED | {
    "status", "resolution", "resolved_by", "resolved_at", "closed_reason", "closed_by", "closed_at",
    "assignee", "assignee_type", "assignee_value", "assignee_reason", "epoch", "priority", "tags", "terms",
    "expires_at", "expiry_action", "original_timeout", "escalation_target", "escalation_count",
    "reminder_interval", "remind_at", "reminder_count", "notification_sent", "notified_at", "message_id",
    "claimed_by", "claim_until", "placed", "placed_by", "placed_until", "paused_at",
}  # fmt: skip
"""What was asked, by which run and where, never changes (CP-2)."""


def demand_changeable(change: HoldChange) -> None:
    """Raises StoreError: that is a mistake in the caller."""
    if not change.fields.keys() <= CHANGEABLE:
        fixed = min(change.fields.keys() - CHANGEABLE)
        raise StoreError(f"{fixed!r} of a hold cannot change.", hold=change.hold)
    for message in change.outbox:
        demand_findable(message)


def demand_blob(digest: bytes, *, standing: bool) -> None:
    """Raises BlobMissingError: what a run is to refer to is put first."""
    if not standing:
        raise BlobMissingError(
            f"The blob {digest.hex()} that a hold is to refer to is not there.",
            hint="Put it before the change that names it.",
            digest=digest.hex(),
        )


def refusal_of(row: HoldRow, change: HoldChange) -> Unchanged | None:
    """Why the change cannot be made to this row. One that changes no field asks for no version."""
    if row.read_only:
        return Unchanged.read_only
    if not change.fields:
        return None
    final = row.status is not HoldStatus.pending
    if row.version != change.version or (final and not _only_resumes(row, change)):
        return Unchanged.stale
    return None


def _only_resumes(row: HoldRow, change: HoldChange) -> bool:
    return change.fields.keys() == RESUMED and row.resumed_at is None


def changed(row: HoldRow, change: HoldChange, now: int) -> HoldRow:
    """Raises StoreError for an outcome that is not whole (CP-14)."""
    if not change.fields:
        return row
    if row.status is not HoldStatus.pending:
        return replace(row, **change.fields)
    after = replace(row, **change.fields, version=row.version + 1, updated_at=now)
    outcome = (after.resolution, after.resolved_by, after.resolved_at)
    if any((part is not None) != (after.status is HoldStatus.resolved) for part in outcome):
        raise StoreError(
            f"The hold {row.id} would be {after.status} with half a decision.",
            hint="resolution, resolved_by and resolved_at are set with the status resolved, and only then.",
            hold=row.id,
        )
    return after
