"""What people leave at a hold without changing it: comments, drafts, and what is theirs alone."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import InputError
from holdfast.holds.actions.answers import Submission, require_comment
from holdfast.holds.actions.audit_entries import COMMENTED, entry, event
from holdfast.holds.actions.change import change, draft_note, draft_of, load, load_visible
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.permissions.assignees import person_key
from holdfast.types.clock import iso
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.ids import new_id
from holdfast.types.terms import Actor
from holdfast.types.text import require_text


async def comment(office: HoldContext, actor: Actor, hold: str, text: str) -> Note:
    """For all who see the hold, also after it is decided. Raises InputError for none, ValueTooLargeError."""
    words = require_text(text, "a comment").strip()
    made: list[Note] = []

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await office.permit(actor, "comment", row, now)
        if not words:
            raise InputError("a comment must not be empty.")
        body = msgspec.json.encode({"text": require_comment(words)})
        note = Note(hold=row.id, kind="comment", slot=new_id(), person=actor.id, at=now, body=body)
        made[:] = [note]
        return _note_change(
            row,
            now,
            notes=(note,),
            audit=(entry(row, actor.id, "commented", now, comment=note.slot),),
            event=event(row, COMMENTED, now, by=actor.id),
        )

    await change(office, actor, hold, "comment", decide)
    return made[0]


async def comments(office: HoldContext, actor: Actor, hold: str) -> list[Note]:
    """Oldest first, with what was asked back and answered."""
    row = await load_visible(office, actor, hold)
    return await office.store.hold_notes(row.id, kinds=("comment", "question", "reply"))


async def save_draft(office: HoldContext, actor: Actor, hold: str, said: Submission) -> None:
    """One's own, and not checked: a form may be half full. Not in the audit. Raises ValueTooLargeError."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await office.permit(actor, "draft", row, now)
        return _note_change(row, now, notes=(draft_note(row, actor, said, now),))

    await change(office, actor, hold, "draft", decide)


async def draft(office: HoldContext, actor: Actor, hold: str) -> Submission | None:
    """One's own, also of a hold that was decided or went to somebody else meanwhile."""
    return await draft_of(office, await load(office, actor, hold), actor)


async def drop_draft(office: HoldContext, actor: Actor, hold: str) -> None:
    await _drop(office, actor, hold, "draft")


async def watch(office: HoldContext, actor: Actor, hold: str) -> None:
    """It is among one's watched holds, whoever decides it."""
    await _mark(office, actor, hold, "watch", "watched")


async def unwatch(office: HoldContext, actor: Actor, hold: str) -> None:
    await _drop(office, actor, hold, "watch")


async def snooze(office: HoldContext, actor: Actor, hold: str, until: int) -> None:
    """Out of one's own sight, and without reminders to oneself, until then. Its deadline stays.

    Raises InputError for a time that is past."""
    now = office.now()
    if until <= now:
        raise InputError(f"{iso(until)} is past.", hint="Give a later time.", hold=hold)
    await _mark(office, actor, hold, "snooze", "snoozed", until=until)


async def unsnooze(office: HoldContext, actor: Actor, hold: str) -> None:
    await _drop(office, actor, hold, "snooze")


async def mark_seen(office: HoldContext, actor: Actor, hold: str) -> None:
    """That this person has looked at it. The first time counts, and is in the audit."""
    row = await load(office, actor, hold)
    known = await office.store.hold_notes(row.id, kinds=("seen",))
    if all(note.slot != person_key(actor.id) for note in known):
        await _mark(office, actor, hold, "seen", "viewed")


async def _mark(
    office: HoldContext, actor: Actor, hold: str, kind: str, action: str, *, until: int | None = None
) -> None:
    async def decide(row: HoldRow, now: int) -> HoldChange:
        await office.permit(actor, kind, row, now)
        slot = person_key(actor.id)
        note = Note(hold=row.id, kind=kind, slot=slot, person=actor.id, at=now, until=until)
        said = {"until": iso(until)} if until is not None else {}
        return _note_change(row, now, notes=(note,), audit=(entry(row, actor.id, action, now, **said),))

    await change(office, actor, hold, kind, decide)


async def _drop(office: HoldContext, actor: Actor, hold: str, kind: str) -> None:
    """One's own, whatever one may see by now."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        return _note_change(row, now, drop_notes=((kind, person_key(actor.id)),))

    await change(office, actor, hold, kind, decide)


def _note_change(row: HoldRow, now: int, **more: Any) -> HoldChange:
    """No fields: it is written whatever becomes of the row meanwhile."""
    return HoldChange(hold=row.id, version=row.version, at=now, **more)
