"""Why an act on a hold came too late or at the wrong time, in words that name who was first."""

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
        hint="`holdfast holds list` shows what is open.",
        hold=hold,
    )


def resolution_of(row: HoldRow) -> dict[str, Any]:
    return msgspec.json.decode(row.resolution) if row.resolution else {}


def decided(row: HoldRow, *, draft_saved: bool = False) -> HoldDecidedError:
    """Names the winner (RS-5)."""
    said = resolution_of(row)
    by, at = row.resolved_by or row.closed_by, row.resolved_at or row.closed_at
    how = repr(said.get("decision")) if row.resolution else str(row.status)
    who = f" by {by}" if by else ""
    when = f" at {iso(at)}" if at else ""
    return HoldDecidedError(
        f"hold {row.id} is already decided: {how}{who}{when}.",
        hint="What you had filled in is kept as your draft." if draft_saved else None,
        hold=row.id,
        status=row.status,
        checkpoint_status=row.status,
        decision=said.get("decision"),
        resolved_by=row.resolved_by,
        resolved_at=row.resolved_at,
        closed_by=row.closed_by,
        closed_at=row.closed_at,
        your_draft_saved=draft_saved,
    )


def require_open(row: HoldRow) -> None:
    """Raises HoldDecidedError for what is not pending, RunReadOnlyError for imported history."""
    if row.read_only:
        raise read_only(row)
    if row.status is not HoldStatus.pending:
        raise decided(row)


def read_only(row: HoldRow) -> RunReadOnlyError:
    return RunReadOnlyError(
        f"run {row.run} is imported history: it can be read and forked, not advanced.",
        hint="Fork it, or import it with as_new_run=True (--as-new-run), to go on from where it stood.",
        run=row.run,
    )


def require_version(row: HoldRow, wanted: int | None) -> None:
    """Raises HoldChangedError where the caller has seen another version (RS-7)."""
    if wanted is not None and wanted != row.version:
        raise HoldChangedError(
            f"hold {row.id} is at version {row.version}; you have seen {wanted}.",
            hint="Read it again, and decide on what it says now.",
            hold=row.id,
            version=row.version,
        )


def require_epoch(row: HoldRow, wanted: int | None) -> None:
    """Raises HoldReassignedError where the caller's link is of an earlier assignment."""
    if wanted is not None and wanted != row.epoch:
        raise reassigned(row)


def require_content(row: HoldRow, shown: str | None) -> None:
    """Raises ContentChangedError where the caller was shown something else (RS-7)."""
    if shown is not None and shown != row.request_hash:
        raise ContentChangedError(
            f"what you were shown is not what hold {row.id} asks.",
            hint="Read it again, and decide on what it says now.",
            hold=row.id,
            request_hash=row.request_hash,
        )


def require_free(row: HoldRow, actor: str, now: int) -> None:
    """Raises HoldClaimedError while somebody else's decision is placed, and can still be taken back."""
    if row.placed_by is not None and not same_person(row.placed_by, actor):
        until = iso(row.placed_until or now)
        raise HoldClaimedError(
            f"{row.placed_by} has decided hold {row.id}; it stands at {until} unless they take it back.",
            hold=row.id,
            placed_by=row.placed_by,
            placed_until=row.placed_until,
        )


def require_undecided(row: HoldRow, actor: str, now: int) -> None:
    """The same, and not while one's own decision is placed either: what stands in a moment is not asked
    about, nor handed on."""
    require_free(row, actor, now)
    if row.placed_by is not None:
        raise ConflictError(
            f"your decision on hold {row.id} is placed, and stands at {iso(row.placed_until or now)}.",
            hint="Take it back first.",
            hold=row.id,
            placed_until=row.placed_until,
        )


def is_late(row: HoldRow, now: int) -> bool:
    """Whether the deadline has passed; it stands still while somebody was asked back."""
    return row.expires_at is not None and row.paused_at is None and row.expires_at <= now


def require_in_time(row: HoldRow, now: int) -> None:
    """Raises DeadlinePassedError where the hold takes no late decisions (EX-10)."""
    if is_late(row, now) and row.terms.late_resolution == "reject":
        raise DeadlinePassedError(
            f"the deadline of hold {row.id} was {iso(row.expires_at or 0)}, and it takes no late decisions.",
            hold=row.id,
            expires_at=row.expires_at,
        )


def reassigned(row: HoldRow) -> HoldReassignedError:
    to = f"{row.assignee_type}:{row.assignee_value}" if row.assignee_value else row.assignee_type
    return HoldReassignedError(
        f"hold {row.id} went to {to} meanwhile.", hold=row.id, assignee=to, epoch=row.epoch
    )
