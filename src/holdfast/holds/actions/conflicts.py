"""Errors for actions that came too late or at the wrong time; they name who was first."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import (
    ConflictError,
    ContentChangedError,
    DeadlinePassedError,
    HoldChangedError,
    HoldClaimedError,
    HoldDecidedError,
    HoldNotFoundError,
    HoldReassignedError,
    RunReadOnlyError,
)
from holdfast.holds.permissions.assignees import same_person
from holdfast.types.clock import iso
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus


def not_found(hold: Any) -> HoldNotFoundError:
    return HoldNotFoundError(
        f"there is no hold {hold!r} in this store.",
        hint="`holdfast holds list` lists the open holds.",
        hold=hold,
    )


def resolution_of(row: HoldRow) -> dict[str, Any]:
    return msgspec.json.decode(row.resolution) if row.resolution else {}


def placed_decision(row: HoldRow) -> str | None:
    """The decision that can still be undone; None if there is none, or the answer has no options."""
    return msgspec.json.decode(row.placed).get("decision") if row.placed else None


def decided(row: HoldRow, *, draft_saved: bool = False) -> HoldDecidedError:
    """Names who decided (RS-5)."""
    resolution = resolution_of(row)
    by, at = row.resolved_by or row.closed_by, row.resolved_at or row.closed_at
    how = repr(resolution.get("decision")) if row.resolution else str(row.status)
    who = f" by {by}" if by else ""
    when = f" at {iso(at)}" if at else ""
    return HoldDecidedError(
        f"hold {row.id} is already decided: {how}{who}{when}.",
        hint="Your input was saved as a draft." if draft_saved else None,
        hold=row.id,
        status=row.status,
        checkpoint_status=row.status,
        decision=resolution.get("decision"),
        resolved_by=row.resolved_by,
        resolved_at=row.resolved_at,
        closed_by=row.closed_by,
        closed_at=row.closed_at,
        your_draft_saved=draft_saved,
    )


def require_open(row: HoldRow) -> None:
    """Raises HoldDecidedError if it is not pending, RunReadOnlyError for imported history."""
    # Before the status: imported history stays closed even where a hold in it is pending.
    if row.read_only:
        raise read_only(row)
    if row.status is not HoldStatus.pending:
        raise decided(row)


def read_only(row: HoldRow) -> RunReadOnlyError:
    return RunReadOnlyError(
        f"run {row.run} is imported history: it can be read and forked, not advanced.",
        hint="To continue it, fork it, or import it with as_new_run=True (--as-new-run).",
        run=row.run,
    )


def require_version(row: HoldRow, wanted: int | None) -> None:
    """Raises HoldChangedError if the caller read another version (RS-7)."""
    if wanted is not None and wanted != row.version:
        raise HoldChangedError(
            f"hold {row.id} is at version {row.version}, but you read version {wanted}.",
            hint="Read it again before you decide.",
            hold=row.id,
            version=row.version,
        )


def require_epoch(row: HoldRow, wanted: int | None) -> None:
    """Raises HoldReassignedError if the caller's link belongs to an earlier assignment."""
    if wanted is not None and wanted != row.epoch:
        raise reassigned(row)


def require_content(row: HoldRow, shown: str | None) -> None:
    """Raises ContentChangedError if the caller was shown other content (RS-7)."""
    if shown is not None and shown != row.request_hash:
        raise ContentChangedError(
            f"the content of hold {row.id} differs from what you were shown.",
            hint="Read it again before you decide.",
            hold=row.id,
            request_hash=row.request_hash,
        )


def require_free(row: HoldRow, actor: str, now: int) -> None:
    """Raises HoldClaimedError while another person's decision can still be undone."""
    if row.placed_by is not None and not same_person(row.placed_by, actor):
        until, decision = iso(row.placed_until or now), placed_decision(row)
        how = f": {decision!r}" if decision else ""
        raise HoldClaimedError(
            f"{row.placed_by} has decided hold {row.id}{how}; the decision is final at {until} unless they "
            f"undo it.",
            hold=row.id,
            placed_by=row.placed_by,
            placed_decision=decision,
            placed_until=row.placed_until,
        )


def require_undecided(row: HoldRow, actor: str, now: int) -> None:
    """The same, and also not while the actor's own decision can still be undone: a hold that is about to be
    decided cannot be reassigned or asked about."""
    require_free(row, actor, now)
    if row.placed_by is not None:
        raise ConflictError(
            f"you have decided hold {row.id}; the decision is final at {iso(row.placed_until or now)}.",
            hint="Undo it first.",
            hold=row.id,
            placed_until=row.placed_until,
        )


def is_late(row: HoldRow, now: int) -> bool:
    """Whether the deadline has passed; it is paused while a question back is open."""
    return row.expires_at is not None and row.paused_at is None and row.expires_at <= now


def require_in_time(row: HoldRow, now: int) -> None:
    """Raises DeadlinePassedError if the hold accepts no late decisions (EX-10)."""
    if is_late(row, now) and row.terms.late_resolution == "reject":
        raise DeadlinePassedError(
            f"the deadline of hold {row.id} was {iso(row.expires_at or 0)}, and it accepts no late "
            f"decisions.",
            hold=row.id,
            expires_at=row.expires_at,
        )


def reassigned(row: HoldRow) -> HoldReassignedError:
    to = f"{row.assignee_type}:{row.assignee_value}" if row.assignee_value else row.assignee_type
    return HoldReassignedError(
        f"hold {row.id} was reassigned to {to}.", hold=row.id, assignee=to, epoch=row.epoch
    )
