"""The only way in which a hold is changed: read it, decide, write it if it is still as it was read.

If another writer was first, the decision is made again on the new row, so the error names who was first. A
refused action is audited, and the data that was sent with it is stored as the sender's draft.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from holdfast.errors import (
    ClaimLostError,
    ConflictError,
    ForbiddenError,
    HoldChangedError,
    HoldDecidedError,
    HoldfastError,
    InputError,
    LinkInvalidError,
    StepUpRequiredError,
)
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.audit_entries import entry
from holdfast.holds.actions.close import placed_is_due
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.finalize import due_change
from holdfast.holds.actions.submission import Submission, encoded, require_small
from holdfast.holds.permissions.assignees import person_key
from holdfast.holds.permissions.check import AGENT_CHANNELS
from holdfast.types.audit import canonical
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldRow, Note
from holdfast.types.terms import Actor

TRIES: Final = 100
"""How often a change is retried. Each retry means that another writer succeeded, so the loop ends."""

Decide = Callable[[HoldRow, int], Awaitable[HoldChange | None]]


async def change(
    ctx: HoldContext,
    actor: Actor,
    hold: str,
    action: str,
    decide: Decide,
    *,
    submission: Submission | None = None,
    found: HoldRow | None = None,
    link: str | None = None,
) -> HoldRow:
    """The row after the change; `decide` returns None if there is nothing to change, or raises.

    `submission`: stored as a draft if the action is refused. `found`: the row, if it was read just now.
    `link`: the link that the actor used. Raises HoldNotFoundError if the actor's tenant has no such hold,
    RateLimitedError, and what `decide` raises."""
    # Before the first read, so that refused attempts cost nothing.
    if ctx.pace is not None:
        ctx.pace.take(actor, hold, ctx.now(), link=link)
    for _ in range(TRIES):
        row = await load(ctx, actor, hold, found=found)
        now, found = ctx.now(), None
        try:
            made = await decide(row, now)
        except (InputError, ForbiddenError, ConflictError) as error:
            # Only refusals of the actor are audited; an unavailable store is not an act of a person.
            await record_refusal(ctx, actor, row, action, error, submission=submission)
            raise
        if made is None:
            # The same request may have succeeded since the row was read.
            return await load(ctx, actor, hold)
        after = await ctx.store.change_hold(_as_agent(made, actor))
        if isinstance(after, HoldRow):
            return after
        # `key_used`: the same request was accepted in the meantime; the next round finds it as a replay.
        if after not in (ChangeRefusal.stale, ChangeRefusal.key_used):
            raise _unchanged(after, row)
    raise HoldChangedError(
        f"hold {hold} was changed by others in every attempt.", hint="Try again.", hold=hold
    )


async def load(ctx: HoldContext, actor: Actor, hold: str, *, found: HoldRow | None = None) -> HoldRow:
    """The hold; a decision whose undo window has passed is made first. Raises HoldNotFoundError."""
    row = found or await ctx.load(actor, hold)
    # A placed decision was made earlier than this action, so
    # it must win. A loop, because another writer may be first.
    while placed_is_due(row, now := ctx.now()):
        made = await due_change(ctx, row, now)
        if made is None:
            break
        await ctx.store.change_hold(made)
        row = await ctx.load(actor, hold)
    return row


async def load_visible(ctx: HoldContext, actor: Actor, hold: str) -> HoldRow:
    """The hold, if the actor may see it. Raises HoldNotFoundError, ForbiddenError."""
    row = await load(ctx, actor, hold)
    try:
        await ctx.permit(actor, "view", row, ctx.now())
    except (ForbiddenError, ConflictError) as error:
        await record_refusal(ctx, actor, row, "view", error)
        raise
    return row


async def record_refusal(
    ctx: HoldContext,
    actor: Actor,
    row: HoldRow,
    action: str,
    error: HoldfastError,
    *,
    submission: Submission | None = None,
) -> None:
    """Write the refusal to the audit, and the data that was sent as a draft; the row does not change."""
    now = ctx.now()
    # No draft for an actor who may not act on the hold: they must not store data with it.
    barred = isinstance(error, ForbiddenError) and not isinstance(error, StepUpRequiredError)
    drafts = () if barred else await _drafts(ctx, row, actor, submission, now)
    data = {"action": action, "code": error.code, "status": error.status}
    refused = entry(row, actor.id, "refused", now, **data)
    # Draft and audit entry in one write: both exist, or neither does.
    made = HoldChange(hold=row.id, version=row.version, at=now, audit=(refused,), notes=drafts)
    kept = isinstance(await ctx.store.change_hold(_as_agent(made, actor)), HoldRow) and bool(drafts)
    error.facts["your_draft_saved"] = kept
    if kept and isinstance(error, HoldDecidedError):
        error.hint = "Your input was saved as a draft."


def _as_agent(made: HoldChange, actor: Actor) -> HoldChange:
    """Marks actions of an agent in the audit, whatever credential it uses."""
    if actor.channel not in AGENT_CHANNELS:
        return made
    submission = [
        msgspec.structs.replace(
            each, data=canonical({**msgspec.json.decode(each.data), "channel": actor.channel})
        )
        for each in made.audit
    ]
    return msgspec.structs.replace(made, audit=tuple(submission))


async def _drafts(
    ctx: HoldContext, row: HoldRow, actor: Actor, submission: Submission | None, now: int
) -> tuple[Note, ...]:
    """The draft, for people only, and not if it is too large or not JSON. Fields of the earlier draft that
    were not sent again are kept, so that a mistake does not cost work."""
    if submission is None or submission.is_empty or actor.is_system or actor.is_service:
        return ()
    before = await draft_of(ctx, row, actor) or Submission()
    given = {
        name: value
        for name in submission.__struct_fields__
        if (value := getattr(submission, name)) is not None
    }
    try:
        return (draft_note(row, actor, msgspec.structs.replace(before, **given), now),)
    except InputError:
        return ()


async def draft_of(ctx: HoldContext, row: HoldRow, actor: Actor) -> Submission | None:
    """One's own."""
    for note in await ctx.store.hold_notes(row.id, kinds=("draft",)):
        if note.slot == person_key(actor.id):
            return msgspec.json.decode(note.body, type=Submission)
    return None


def draft_note(row: HoldRow, actor: Actor, submission: Submission, now: int) -> Note:
    """Raises AnswerInvalidError if the data is not JSON, ValueTooLargeError."""
    body = encoded(submission)
    require_small(msgspec.json.decode(body))
    return Note(hold=row.id, kind="draft", slot=person_key(actor.id), person=actor.id, at=now, body=body)


def _unchanged(why: ChangeRefusal, row: HoldRow) -> HoldfastError:
    if why is ChangeRefusal.message_lost:
        return ClaimLostError(
            "the claim on the message has ended; the hold is as it was.",
            hint="Claim the message again, or decide the hold itself.",
            hold=row.id,
        )
    if why is ChangeRefusal.link_used:
        return LinkInvalidError(
            "this link was used already.", hint="Open the question to see the decision.", hold=row.id
        )
    return conflicts.read_only(row) if why is ChangeRefusal.read_only else conflicts.not_found(row.id)
