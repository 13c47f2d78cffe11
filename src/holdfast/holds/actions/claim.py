"""Claiming a hold for a while, so that two people do not work on the same one (AS-10, AS-12)."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.errors import InputError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.audit_entries import CLAIMED, RELEASED, entry, event
from holdfast.holds.actions.change import change
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.reassign import moved
from holdfast.holds.actions.vote import require_vote
from holdfast.holds.permissions.assignees import UNROUTED, parse_assignee
from holdfast.types.clock import MICROS, iso
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.terms import Actor

CLAIM_SECONDS: Final = 30 * 60
MAX_SECONDS: Final = 7 * 86_400


async def require_reviewer(ctx: HoldContext, actor: Actor, hold: str) -> None:
    """Whether the actor may take the question of this hold out of a queue: what they cannot decide would be
    hidden from those who can. Raises ForbiddenError and its subclasses, HoldClaimedError, AlreadyVotedError,
    HoldNotFoundError."""
    row, now = await ctx.load(actor, hold), ctx.now()
    permit = await ctx.permit(actor, "review", row, now)
    if row.terms.approval.mode != "any":
        await require_vote(ctx, actor, row, permit, now)


async def claim(
    ctx: HoldContext, actor: Actor, hold: str, *, seconds: float | None = None, reason: str | None = None
) -> HoldRow:
    """A lease: it expires by itself, and until then others can decide only by override. The assignee does not
    change, except for an unrouted hold, which is assigned to the claimer. Claiming again extends it.

    Raises HoldClaimedError while another person has it."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        until = now + _length(seconds)
        permit = await ctx.permit(actor, "claim", row, now, reason=reason)
        conflicts.require_open(row)
        conflicts.require_free(row, actor.id, now)
        # A hold whose delegation is not in force has no assignee either.
        if row.assignee_type == UNROUTED or permit.past.astray:
            own = actor.id if actor.id.startswith("user:") else f"user:{actor.id}"
            return _own(row, actor, own, now, until)
        facts = {"reason": reason.strip()} if reason else {}
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            fields={"claimed_by": actor.id, "claim_until": until},
            audit=(entry(row, actor.id, "claimed", now, until=iso(until), **facts),),
            event=event(row, CLAIMED, now, by=actor.id, until=iso(until)),
        )

    return await change(ctx, actor, hold, "claim", decide)


def _own(row: HoldRow, actor: Actor, own: str, now: int, until: int) -> HoldChange:
    """An unrouted hold is assigned to the claimer (AS-10)."""
    move = moved(row, own, parse_assignee(own), by=actor.id, at=now, claim_until=until)
    claimed = entry(row, actor.id, "claimed", now, until=iso(until))
    return msgspec.structs.replace(move, audit=(*move.audit, claimed))


def _length(seconds: float | None) -> int:
    wanted = CLAIM_SECONDS if seconds is None else seconds
    if not 0 < wanted <= MAX_SECONDS:
        raise InputError(
            f"a claim lasts at most {MAX_SECONDS:,} seconds, not {seconds}.",
            hint="Claim it again before it expires.",
        )
    return int(wanted * MICROS)


async def release(ctx: HoldContext, actor: Actor, hold: str) -> HoldRow:
    """End a claim; without one nothing changes. Only admins can end another person's claim."""

    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        conflicts.require_open(row)
        if row.claimed_by is None:
            await ctx.permit(actor, "view", row, now)
            return None
        await ctx.permit(actor, "release", row, now)
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            fields={"claimed_by": None, "claim_until": None},
            audit=(entry(row, actor.id, "released", now, claimed_by=row.claimed_by),),
            event=event(row, RELEASED, now, by=actor.id),
        )

    return await change(ctx, actor, hold, "release", decide)
