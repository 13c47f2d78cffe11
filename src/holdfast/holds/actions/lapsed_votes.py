"""Votes whose authors may not decide any more: they lapse before the next vote is counted.

A vote is cast when it is given and applied when the last one is: in between its author may leave the group,
or their token may be revoked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.holds.actions.audit_entries import TAKEN_BACK, entry, event
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.lost_right import (
    ENDED,
    SESSION_ENDED,
    draft_of_answer,
    is_revoked,
    lost_right,
    session_end,
)
from holdfast.holds.actions.vote import Ballot, cast_ballots, handed_on
from holdfast.holds.permissions.exclusions import actor_capacity, exclusion
from holdfast.holds.permissions.permission_facts import permission_facts
from holdfast.holds.permissions.vote_count import turn_of
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor

Lapse = tuple[str, Ballot, str]
"""The slot of the vote, the vote, and why it lapses."""


async def without_lapsed_votes(ctx: HoldContext, row: HoldRow, now: int) -> HoldRow:
    """The row with the votes that still count; a sequential hold goes back to the approver whose signature
    lapsed. Raises DirectoryUnavailableError while the directory cannot say."""
    while row.status is HoldStatus.pending and row.terms.approval.mode != "any":
        cast = await cast_ballots(ctx, row)
        lapsed = await _lapses(ctx, row, cast, now)
        if not lapsed:
            break
        gone = {slot for slot, _, _ in lapsed}
        left = [ballot for slot, ballot in cast if slot not in gone]
        await ctx.store.change_hold(await _change(ctx, row, lapsed, left, now))
        # Also where another writer was first: then it is looked at again.
        row = await ctx.find(row.id)
    return row


async def _lapses(
    ctx: HoldContext, row: HoldRow, cast: Sequence[tuple[str, Ballot]], now: int
) -> list[Lapse]:
    found: list[Lapse] = []
    in_order = row.terms.approval.mode == "sequential"
    for slot, ballot in cast:
        if in_order and found:
            # It was signed after one that does not count, so not in its turn.
            found.append((slot, ballot, f"the signature of {found[0][1].person} before it lapsed"))
            continue
        why = await _lost(ctx, _as_it_was_asked(row, ballot), ballot, now)
        if why is not None:
            found.append((slot, ballot, why))
    return found


async def _lost(ctx: HoldContext, row: HoldRow, ballot: Ballot, now: int) -> str | None:
    """Why the vote does not count any more; None: it does. The vote of a substitute stays when the absence
    ends, as long as both could decide."""
    given, token = ballot.resolution, ballot.credential
    # Who signs out keeps their votes; a session that was ended for them takes them away.
    end = await session_end(ctx, ballot.session) if ballot.session else None
    if end is not None and end.how == ENDED:
        return SESSION_ENDED
    why = await lost_right(ctx, row, ballot.person, given, token, now)
    absent = ballot.on_behalf_of
    if why is None or absent is None or given.get("authority") != "substitute":
        return why
    if token and await is_revoked(ctx, token):
        return why
    voter = await ctx.standing(Actor(id=ballot.person, tenant=row.tenant, chain=()), now, delegated=False)
    past = await permission_facts(ctx.store, ctx.deployments, row, now)
    if voter.barred or voter.silence or exclusion(actor_capacity(voter), row, past):
        return why
    return await lost_right(ctx, row, absent, {**given, "members": None, "chain": None}, "", now)


def _as_it_was_asked(row: HoldRow, ballot: Ballot) -> HoldRow:
    """With the places that the voter had: a hold that was handed on since takes no vote away."""
    approval = row.terms.approval
    members: dict[str, Any] = ballot.resolution.get("members") or {}
    matched: str | None = members.get("matched") or None
    now = approval.of or (f"{row.assignee_type}:{row.assignee_value}",)
    seats = dict.fromkeys([*now, *ballot.seats, *([matched] if matched else [])])
    approval = msgspec.structs.replace(approval, of=tuple(seats))
    return msgspec.structs.replace(row, terms=msgspec.structs.replace(row.terms, approval=approval))


async def _change(
    ctx: HoldContext, row: HoldRow, lapsed: Sequence[Lapse], left: Sequence[Ballot], now: int
) -> HoldChange:
    _, first, why = lapsed[0]
    made = HoldChange(
        hold=row.id,
        version=row.version,
        at=now,
        # A change of the row, so that a vote at the same time conflicts with it.
        fields={"claimed_by": None, "claim_until": None},
        audit=tuple(entry(row, each.person, "vote_lapsed", now, why=reason) for _, each, reason in lapsed),
        notes=tuple(draft_of_answer(row, each.person, each.resolution, now) for _, each, _ in lapsed),
        drop_notes=tuple(("vote", slot) for slot, _, _ in lapsed),
        event=event(row, TAKEN_BACK, now, by=first.person, why=why),
    )
    turn = turn_of(row, left)
    return made if turn is None else await handed_on(ctx, row, first.person, made, turn)
