"""Cancelling a hold: it ends without a decision, and never counts as an approval (CA-1, CA-2)."""

from __future__ import annotations

from holdfast.holds.actions import conflicts
from holdfast.holds.actions.change import change
from holdfast.holds.actions.close import cancelled
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.submission import require_comment
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor


async def cancel(
    ctx: HoldContext, actor: Actor, hold: str, *, reason: str = "cancelled", if_match: int | None = None
) -> HoldRow:
    """Cancelling twice changes nothing. Raises HoldDecidedError after a decision or an expiry."""

    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        await ctx.permit(actor, "cancel", row, now)
        if row.status is HoldStatus.cancelled:
            return None
        conflicts.require_open(row)
        conflicts.require_free(row, actor.id, now)
        conflicts.require_version(row, if_match)
        return cancelled(row, by=actor.id, reason=require_comment(reason), at=now)

    return await change(ctx, actor, hold, "cancel", decide)
