"""Whether a message is still to be told when its turn comes."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.holds.timing.reminders import is_wanted, ping_of
from holdfast.model.breakpoints import TYPE as BREAKPOINT
from holdfast.store.protocols__holding import Outbox
from holdfast.types.hold import HoldRow
from holdfast.types.outbox import CLOSED, JUDGE, REMINDED, OutboxRow, OutboxState
from holdfast.types.status import HoldStatus

# A message that is always a little behind others is told in the end.
PATIENT = 8


def why_not(row: HoldRow | None, message: OutboxRow, payload: dict[str, Any], now: int) -> str | None:
    """None: it is to be told."""
    if row is None:
        return "its hold is gone"
    if row.type == BREAKPOINT:
        return "breakpoints are told to nobody"
    if row.read_only:
        return "its run is imported history"
    if message.topic == CLOSED:
        return None
    if row.status is not HoldStatus.pending:
        return f"the hold is {row.status} already"
    if payload.get("epoch") != row.epoch:
        return "the hold went to somebody else meanwhile"
    if message.topic == REMINDED and not _is_due(row, message, now):
        return "the reminder is not wanted any more"
    return None


def _is_due(row: HoldRow, message: OutboxRow, now: int) -> bool:
    """A reminder that some have taken already is counted, and still goes to the others."""
    try:
        ping = ping_of(message.payload)
    except msgspec.MsgspecError:
        return False
    behind = msgspec.structs.replace(row, reminder_count=ping.reminder - 1)
    return is_wanted(behind, ping, now) and row.reminder_count in (ping.reminder - 1, ping.reminder)


async def in_flight(store: Outbox, message: OutboxRow, now: int) -> bool:
    """Whether somebody is just being told that the hold is open: they hear of its end after that."""
    if message.attempts > PATIENT or message.hold is None:
        return False
    others = await store.list_outbox(hold=message.hold, state=OutboxState.waiting)
    return any(
        each.id != message.id and each.topic != JUDGE and (each.claimed_until or 0) > now for each in others
    )
