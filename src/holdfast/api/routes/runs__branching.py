"""Who may branch off a run in which somebody has decided something."""

from __future__ import annotations

from holdfast.api.auth.principal import Principal, Right
from holdfast.errors import ForbiddenError
from holdfast.runs.service import RunService
from holdfast.store.protocols import RunRow
from holdfast.types.status import HoldStatus


async def demand_undecided(who: Principal, service: RunService, row: RunRow, seq: int | None) -> None:
    """What somebody approved, they approved for that run: whoever may not manage holds cannot take their yes
    along into another. From before the question, where it is asked anew, anybody may branch off."""
    if who.may(Right.manage):
        return
    at = row.head if seq is None else seq
    for hold in await service.holds(row.id, open_only=False):
        if hold.status is HoldStatus.resolved and hold.seq < at:
            raise ForbiddenError(
                f"what was asked at {hold.node} has been decided before that point; "
                "the decision would go along.",
                hint=f"Branch off from before it was asked, or let somebody with {Right.manage} do it.",
                hold=hold.id,
            )
