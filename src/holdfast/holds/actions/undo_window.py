"""The undo window: a decision is placed, shown to others, and made when its time is up (section 6 no. 8).

The row stays pending meanwhile. The sweep, or the next look at it, makes the decision by the same
compare-and-set as any other (`closing.lapsed`); one call takes it back.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import ConflictError, ForbiddenError, InputError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.answers import Submission
from holdfast.holds.actions.audit_entries import PLACED, TAKEN_BACK, entry, event
from holdfast.holds.actions.change import change, draft_note
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.resolve import ResolveConditions, ResolveResult, consider, is_replay
from holdfast.holds.permissions.assignees import same_person
from holdfast.types.clock import MICROS, iso
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.terms import Actor

UNDO_SECONDS: Final = 8

_EMPTY: Final[dict[str, Any]] = {"placed": None, "placed_by": None, "placed_until": None}


async def place(
    office: HoldContext,
    actor: Actor,
    hold: str,
    said: Submission,
    terms: ResolveConditions,
    *,
    seconds: float | None = None,
) -> ResolveResult:
    """Checked as a decision is, and made when the window lapses. At once where the hold has no window
    (`undo` is 0), and where several people vote.

    Raises as `resolve` does."""
    replayed: list[bool] = []

    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        if await is_replay(office, actor, row, said, terms):
            replayed.append(True)
            return None
        made = await consider(office, actor, row, now, said, terms)
        window = _window(row, seconds)
        return made if window <= 0 or row.terms.approval.mode != "any" else _placed(row, actor, made, window)

    row = await change(office, actor, hold, "place", decide, said=said, link=terms.link)
    return ResolveResult(row, bool(replayed))


def _window(row: HoldRow, seconds: float | None) -> int:
    """What the hold says is the most. Raises InputError for less than nothing."""
    allowed = UNDO_SECONDS if row.terms.undo is None else row.terms.undo
    wanted = allowed if seconds is None else seconds
    if not wanted >= 0:  # also of NaN
        raise InputError(
            f"a decision cannot be taken back for {seconds} seconds.", hint="0 makes it at once."
        )
    return int(MICROS * min(wanted, allowed))


def _placed(row: HoldRow, actor: Actor, made: HoldChange, window: int) -> HoldChange:
    until = made.at + window
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=made.at,
        fields={"placed": made.fields["resolution"], "placed_by": actor.id, "placed_until": until},
        audit=(entry(row, actor.id, "placed", made.at, until=iso(until)),),
        event=event(row, PLACED, made.at, by=actor.id, until=iso(until)),
        link=made.link,
        key=made.key,
    )


async def undo(office: HoldContext, actor: Actor, hold: str) -> HoldRow:
    """Takes one's own placed decision back; what was filled in is one's draft again.

    Raises HoldDecidedError where its time was up, ConflictError where nothing is placed."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await office.permit(actor, "view", row, now)
        conflicts.require_open(row)
        if row.placed is None or row.placed_by is None:
            raise ConflictError(f"no decision is placed on hold {row.id}.", hold=row.id)
        if not same_person(row.placed_by, actor.id):
            raise ForbiddenError(f"only {row.placed_by} can take that decision back.", hold=row.id)
        placed: dict[str, Any] = msgspec.json.decode(row.placed)
        said = Submission(**{name: placed.get(name) for name in ("decision", "response_data", "comment")})
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            fields=_EMPTY,
            audit=(entry(row, actor.id, "taken_back", now),),
            notes=(draft_note(row, actor, said, now),),
            event=event(row, TAKEN_BACK, now, by=actor.id),
        )

    return await change(office, actor, hold, "undo", decide)
