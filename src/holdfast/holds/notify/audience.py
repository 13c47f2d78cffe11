"""The recipients of a message: the hold's present assignees, or the person who was asked back.

Also whether a message is still to be sent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.permissions.assignees import DELEGATED, UNROUTED, parse_assignee, same_person
from holdfast.holds.permissions.vote_count import voters_of
from holdfast.holds.timing.reminders import is_wanted, ping_of
from holdfast.store.hold_protocols import Outbox
from holdfast.store.protocols import Store
from holdfast.types.hold import UNASKED, HoldRow
from holdfast.types.outbox import ASKED_BACK, CLOSED, JUDGE, LINK, REMINDED, OutboxRow, OutboxState
from holdfast.types.status import HOLD_LABELS, HoldStatus
from holdfast.types.terms import Assignee


async def audience(store: Store, row: HoldRow, topic: str, payload: dict[str, Any]) -> list[Assignee]:
    """Empty if the hold is unrouted (NO-6), or its delegation is not in force."""
    named = _asked(payload) if topic in (ASKED_BACK, LINK) else _waiting(row)
    found = [await _in_person(store, row, each) for each in named]
    return [each for each in found if each.type != UNROUTED]


def _asked(payload: dict[str, Any]) -> list[Assignee]:
    """An agent gets no message: it reads the question from its run."""
    whom = str(payload.get("to") or "")
    return [] if whom.startswith("agent:") else [parse_assignee(whom)]


def _waiting(row: HoldRow) -> list[Assignee]:
    """All who may vote; a sequential hold is assigned to the approver whose turn it is."""
    if row.terms.approval.mode == "sequential":
        return [Assignee(row.assignee_type, row.assignee_value)]
    return list(voters_of(row))


async def asked_back(store: Store, row: HoldRow, payload: dict[str, Any]) -> str | None:
    """The text of the question or answer, with the prompt; None if it was withdrawn."""
    kind = "reply" if payload.get("reply") else "question"
    notes = await store.hold_notes(row.id, kinds=(kind,))
    found = next((note for note in notes if note.slot == payload.get("question")), None)
    if found is None:
        return None
    text = str(msgspec.json.decode(found.body).get("text", ""))
    return f"{text}\n\nAbout: {row.prompt}"


async def _in_person(store: Store, row: HoldRow, to: Assignee) -> Assignee:
    """A delegated user is replaced by the present person (AS-9); an address stays as written (NO-4)."""
    if to.type == DELEGATED:
        found = await Deployments(store).delegation(row.tenant, to.value)
        lasts = found is not None and found.is_active(store.now())
        return parse_assignee(found.to) if found is not None and lasts else Assignee(UNROUTED)
    written = (row.assignee or "").partition(":")[2].strip() or (row.assignee or "").strip()
    if to.type == "user" and same_person(written, to.value):
        return Assignee("user", written)
    return to


# The bound makes sure that a message that always waits for others is sent in the end.
PATIENT = 8


def skip_reason(row: HoldRow | None, message: OutboxRow, payload: dict[str, Any], now: int) -> str | None:
    """Why the message is not sent; None: it is to be sent."""
    if row is None:
        return "the hold does not exist any more"
    if row.type in UNASKED:
        return "breakpoints are not notified"
    if row.read_only:
        return "its run is imported history"
    if message.topic == CLOSED:
        return None
    if row.status is not HoldStatus.pending:
        return f"the hold is already {HOLD_LABELS[row.status]}"
    if payload.get("epoch") != row.epoch:
        return "the hold was reassigned"
    if message.topic == REMINDED and not _is_due(row, message, now):
        return "the reminder is no longer needed"
    return None


def _is_due(row: HoldRow, message: OutboxRow, now: int) -> bool:
    """A reminder that some recipients have is counted, and is still sent to the others."""
    try:
        ping = ping_of(message.payload)
    except msgspec.MsgspecError:
        return False
    behind = msgspec.structs.replace(row, reminder_count=ping.reminder - 1)
    return is_wanted(behind, ping, now) and row.reminder_count in (ping.reminder - 1, ping.reminder)


async def in_flight(store: Outbox, message: OutboxRow, now: int) -> bool:
    """Whether a notice that the hold is open is just being sent: the notice of its end follows after it."""
    if message.attempts > PATIENT or message.hold is None:
        return False
    others = await store.list_outbox(hold=message.hold, state=OutboxState.waiting)
    return any(
        each.id != message.id and each.topic != JUDGE and (each.claimed_until or 0) > now for each in others
    )
