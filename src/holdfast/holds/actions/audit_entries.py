"""What an action on a hold writes: an audit entry, an event of the run, an outbox message."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.types.audit import NewAudit, canonical
from holdfast.types.event import EventRow
from holdfast.types.hold import HoldRow
from holdfast.types.outbox import OutboxMessage

RESOLVED = "hold.resolved"
CANCELLED = "hold.cancelled"
REASSIGNED = "hold.reassigned"
CLAIMED = "hold.claimed"
RELEASED = "hold.released"
EXTENDED = "hold.extended"
COMMENTED = "hold.commented"
VOTED = "hold.voted"
PLACED = "hold.placed"
TAKEN_BACK = "hold.taken_back"
ASKED_BACK = "hold.asked_back"
REPLIED = "hold.replied"
QUESTION_DROPPED = "hold.question_dropped"
ESCALATED = "hold.escalated"
RAISED = "hold.raised"
EXPIRED = "hold.expired"
REMINDED = "hold.reminded"
RESCHEDULED = "hold.rescheduled"
VETOED = "hold.vetoed"


def entry(row: HoldRow, by: str, action: str, at: int, /, **data: Any) -> NewAudit:
    """An audit entry: never contains a secret or the data of a form."""
    return NewAudit(at=at, actor=by, action=action, hold=row.id, run=row.run, data=canonical(data))


def event(row: HoldRow, kind: str, at: int, /, **data: Any) -> EventRow:
    return EventRow(0, at, kind, msgspec.json.encode({"hold": row.id, **data}))


def message(
    row: HoldRow, topic: str, *, epoch: int | None = None, number: str | int | None = None, **facts: Any
) -> OutboxMessage:
    """The key is derived from the content, so that it is sent once. `number`: if there are several in one
    epoch."""
    about = row.epoch if epoch is None else epoch
    key = f"{row.id}:{topic}:{about}" + (f":{number}" if number is not None else "")
    payload = msgspec.json.encode({"hold": row.id, "epoch": about, **facts})
    return OutboxMessage(topic, key, payload, hold=row.id)
