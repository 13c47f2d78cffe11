"""The undo window: a decision is shown to others at once, and becomes final when the window ends (section 6
no. 8).

Until then the row stays pending. The sweep, or the next read, makes the decision final by the same
compare-and-set as any other (`close.placed_decision_change`); until then one call undoes it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import ConflictError, ForbiddenError, InputError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.audit_entries import PLACED, TAKEN_BACK, entry, event
from holdfast.holds.actions.change import change, draft_note
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.decide import ResolveConditions, ResolveResult, consider, is_replay
from holdfast.holds.actions.finalize import EMPTY
from holdfast.holds.actions.lapsed_votes import without_lapsed_votes
from holdfast.holds.actions.submission import Submission
from holdfast.holds.permissions.assignees import same_person
from holdfast.types.clock import MICROS, iso
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.terms import Actor

UNDO_SECONDS: Final = 8


async def place(
    ctx: HoldContext,
    actor: Actor,
    hold: str,
    submission: Submission,
    terms: ResolveConditions,
    *,
    seconds: float | None = None,
) -> ResolveResult:
    """Checked like any decision, and final when the window ends. Final at once if the hold has no window
    (`undo` is 0), or if several people vote.

    Raises as `resolve` does."""
    replayed: list[bool] = []

    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        if await is_replay(ctx, actor, row, submission, terms):
            replayed.append(True)
            return None
        # All checks are made now: the person must learn of an invalid answer while they are still there.
        row = await without_lapsed_votes(ctx, row, now)
        return placed(row, actor, await consider(ctx, actor, row, now, submission, terms), seconds)

    row = await change(ctx, actor, hold, "place", decide, submission=submission, link=terms.link)
    return ResolveResult(row, bool(replayed))


def placed(row: HoldRow, actor: Actor, made: HoldChange, seconds: float | None = None) -> HoldChange:
    """The decision, to be made when the window ends; made at once if the hold has no window."""
    window = _window(row, seconds)
    # A row has room for one placed decision, and votes of several people may overlap.
    return made if window <= 0 or row.terms.approval.mode != "any" else _placed(row, actor, made, window)


def _window(row: HoldRow, seconds: float | None) -> int:
    """The hold's `undo` is the maximum. Raises InputError for a negative length."""
    allowed = UNDO_SECONDS if row.terms.undo is None else row.terms.undo
    wanted = allowed if seconds is None else seconds
    if not wanted >= 0:  # also true for NaN
        raise InputError(
            f"{seconds} seconds is not a valid undo window.", hint="Give 0 or more; 0 decides at once."
        )
    return int(MICROS * min(wanted, allowed))


def _placed(row: HoldRow, actor: Actor, made: HoldChange, window: int) -> HoldChange:
    until = made.at + window
    resolution = made.fields["resolution"]
    if actor.credential or actor.session:
        # Only until it is final: a token or session that ends meanwhile decides nothing.
        used = {"credential": actor.credential, "session": actor.session}
        resolution = msgspec.json.encode({**msgspec.json.decode(resolution), **used})
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=made.at,
        # The finished resolution and not the request: the answer was checked. Whether the author may still
        # decide is checked again when the window ends.
        fields={"placed": resolution, "placed_by": actor.id, "placed_until": until},
        audit=(entry(row, actor.id, "placed", made.at, until=iso(until)),),
        event=event(row, PLACED, made.at, by=actor.id, until=iso(until)),
        # Used up now and not when the window ends: otherwise the same link could place a second decision.
        link=made.link,
        key=made.key,
    )


async def undo(ctx: HoldContext, actor: Actor, hold: str) -> HoldRow:
    """Undo the actor's decision; its data is their draft again.

    Raises HoldDecidedError if the window has ended, ConflictError if there is no decision to undo."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await ctx.permit(actor, "view", row, now)
        conflicts.require_open(row)
        if row.placed is None or row.placed_by is None:
            raise ConflictError(f"hold {row.id} has no decision to undo.", hold=row.id)
        if not same_person(row.placed_by, actor.id):
            raise ForbiddenError(f"only {row.placed_by} can undo this decision.", hold=row.id)
        given: dict[str, Any] = msgspec.json.decode(row.placed)
        submission = Submission(
            **{name: given.get(name) for name in ("decision", "response_data", "comment")}
        )
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            fields=EMPTY,
            audit=(entry(row, actor.id, "taken_back", now),),
            # Undo is for corrections: the person should not have to fill in the form again.
            notes=(draft_note(row, actor, submission, now),),
            event=event(row, TAKEN_BACK, now, by=actor.id),
        )

    return await change(ctx, actor, hold, "undo", decide)
