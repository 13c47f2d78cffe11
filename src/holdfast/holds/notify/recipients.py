"""The delivery state of a notice for each recipient: stored with the hold, one note each."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.holds.notify.channel import Delivery
from holdfast.store.hold_protocols import Holds
from holdfast.types.hold import HoldRow, Note
from holdfast.types.ids import HoldId
from holdfast.types.outbox import REMINDED

KIND = "recipient"
SYSTEM = "system:notifier"


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """`late`: it was accepted after the hold had ended. `final`: a refusal that is not retried."""

    notice: str
    topic: str
    channel: str
    to: str
    accepted: bool
    final: bool = False
    late: bool = False
    attempt: int = 1
    detail: str = ""


async def recipients_of(store: Holds, hold: str) -> list[Recipient]:
    """In the order in which they were first tried."""
    notes = await store.hold_notes(HoldId(hold), kinds=(KIND,))
    return [msgspec.json.decode(note.body, type=Recipient) for note in notes]


def outcome(
    notice: str, topic: str, where: tuple[str, str], delivery: Delivery, attempt: int, *, late: bool
) -> Recipient:
    return Recipient(
        notice=notice,
        topic=topic,
        channel=where[0],
        to=where[1],
        accepted=delivery.accepted,
        final=not delivery.accepted and not delivery.retry,
        late=late,
        attempt=attempt,
        detail=delivery.detail,
    )


def note_of(row: HoldRow, recipient: Recipient, at: int) -> Note:
    # Only the last reminder is stored, so that a hold that waits for years stays small.
    about = REMINDED if recipient.topic == REMINDED else recipient.notice
    slot = f"{recipient.channel} {recipient.to} {about}"
    body = msgspec.json.encode(recipient)
    return Note(hold=row.id, kind=KIND, slot=slot, person=SYSTEM, at=at, body=body)


def informed_recipients(known: Sequence[Recipient]) -> list[tuple[str, str]]:
    """The recipients who were notified of a hold: (channel, address), each once."""
    return list(dict.fromkeys((each.channel, each.to) for each in known if each.accepted))
