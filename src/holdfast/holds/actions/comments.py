"""Comments and drafts of a hold, which do not change the hold itself."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import InputError
from holdfast.holds.actions.audit_entries import COMMENTED, entry, event
from holdfast.holds.actions.change import change, draft_note, draft_of, load, load_visible
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.submission import Submission, require_comment
from holdfast.holds.permissions.assignees import person_key
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.ids import new_id
from holdfast.types.terms import Actor
from holdfast.types.text import require_text

COMMENT_KINDS: Final = ("comment", "question", "reply")


async def comment(ctx: HoldContext, actor: Actor, hold: str, text: str) -> Note:
    """Add a comment; possible also after the decision. Raises InputError if it is empty,
    ValueTooLargeError."""
    words = require_text(text, "a comment").strip()
    made: list[Note] = []

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await ctx.permit(actor, "comment", row, now)
        if not words:
            raise InputError("a comment must not be empty.")
        body = msgspec.json.encode({"text": require_comment(words)})
        note = Note(hold=row.id, kind="comment", slot=new_id(), person=actor.id, at=now, body=body)
        made[:] = [note]
        return note_change(
            row,
            now,
            notes=(note,),
            audit=(entry(row, actor.id, "commented", now, comment=note.slot),),
            event=event(row, COMMENTED, now, by=actor.id),
        )

    await change(ctx, actor, hold, "comment", decide)
    return made[0]


async def comments(ctx: HoldContext, actor: Actor, hold: str) -> list[Note]:
    """Oldest first, including questions asked back and their answers."""
    row = await load_visible(ctx, actor, hold)
    return await ctx.store.hold_notes(row.id, kinds=COMMENT_KINDS)


async def save_draft(ctx: HoldContext, actor: Actor, hold: str, submission: Submission) -> None:
    """The actor's draft, not validated: a form may be half filled. Not in the audit. Raises
    ValueTooLargeError."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await ctx.permit(actor, "draft", row, now)
        return note_change(row, now, notes=(draft_note(row, actor, submission, now),))

    await change(ctx, actor, hold, "draft", decide)


async def draft(ctx: HoldContext, actor: Actor, hold: str) -> Submission | None:
    """The actor's draft, also for a hold that was decided or reassigned in the meantime."""
    return await draft_of(ctx, await load(ctx, actor, hold), actor)


async def delete_draft(ctx: HoldContext, actor: Actor, hold: str) -> None:
    await delete_note(ctx, actor, hold, "draft")


async def delete_note(ctx: HoldContext, actor: Actor, hold: str, kind: str) -> None:
    """Drop the actor's note, even if they may no longer see the hold."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        return note_change(row, now, drop_notes=((kind, person_key(actor.id)),))

    await change(ctx, actor, hold, kind, decide)


def note_change(row: HoldRow, now: int, **more: Any) -> HoldChange:
    """Without fields: it is written whatever happens to the row in the meantime."""
    return HoldChange(hold=row.id, version=row.version, at=now, **more)
