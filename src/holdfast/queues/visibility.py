"""Who sees the content of a review request: those who may see its hold (ADR 78)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from holdfast.holds.service import HoldService
from holdfast.types.ids import HoldId
from holdfast.types.queue_message import MessageRow
from holdfast.types.terms import Actor

_HIDDEN = b"null"


async def with_visible_content(
    people: HoldService, actor: Actor, rows: Iterable[MessageRow]
) -> list[MessageRow]:
    """The rows, without payload and result of the review requests whose hold the actor may not see. That such
    a message exists is shown: it is counted, claimed and moved as others are."""
    found = list(rows)
    if all(row.hold is None for row in found):
        return found
    now = people.ctx.now()
    standing = await people.ctx.standing(actor, now)
    shown: list[MessageRow] = []
    for row in found:
        hold = None if row.hold is None else await people.store.hold(HoldId(row.hold))
        visible = row.hold is None or (
            hold is not None
            and hold.tenant == actor.tenant
            and await people.ctx.may(standing, "view", hold, now)
        )
        shown.append(row if visible else replace(row, payload=_HIDDEN, result=None))
    return shown
