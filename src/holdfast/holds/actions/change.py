"""The one way in which a hold is changed: read it, decide, write it if it is still as it was read.

Whoever was second decides again on what the first has left, and so learns who was first. What is refused is
audited, and what the refused had filled in stays their draft.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from holdfast.errors import (
    ConflictError,
    ForbiddenError,
    HoldChangedError,
    HoldDecidedError,
    HoldfastError,
    InputError,
    LinkInvalidError,
)
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.answers import Submission, encoded, require_small
from holdfast.holds.actions.audit_entries import entry
from holdfast.holds.actions.close import placed_decision_change, placed_is_due
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.permissions.assignees import person_key
from holdfast.holds.permissions.check import AGENT_CHANNELS
from holdfast.types.audit import canonical
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldRow, Note
from holdfast.types.terms import Actor

TRIES: Final = 100
"""How often a change is decided anew. Each time somebody else has got on, so that it ends."""

Decide = Callable[[HoldRow, int], Awaitable[HoldChange | None]]


async def change(
    office: HoldContext,
    actor: Actor,
    hold: str,
    action: str,
    decide: Decide,
    *,
    said: Submission | None = None,
    found: HoldRow | None = None,
    link: str | None = None,
) -> HoldRow:
    """The row as it is afterwards; `decide` answers None where nothing is to be done, or raises.

    `said`: what is kept as a draft where it is refused. `found`: the row, where it was read just now.
    `link`: by which they came. Raises HoldNotFoundError for what this actor's tenant does not have,
    RateLimitedError, and what `decide` raises."""
    if office.pace is not None:
        office.pace.take(actor, hold, office.now(), link=link)
    for _ in range(TRIES):
        row = await load(office, actor, hold, found=found)
        now, found = office.now(), None
        try:
            made = await decide(row, now)
        except (InputError, ForbiddenError, ConflictError) as error:
            await record_refusal(office, actor, row, action, error, said=said)
            raise
        if made is None:
            # The same request may have come through since the row was read.
            return await load(office, actor, hold)
        after = await office.store.change_hold(_as_agent(made, actor))
        if isinstance(after, HoldRow):
            return after
        if after not in (ChangeRefusal.stale, ChangeRefusal.key_used):
            raise _unchanged(after, row)
    raise HoldChangedError(f"hold {hold} changes all the time.", hint="Try again in a moment.", hold=hold)


async def load(office: HoldContext, actor: Actor, hold: str, *, found: HoldRow | None = None) -> HoldRow:
    """The hold, with a placed decision made whose time has come. Raises HoldNotFoundError."""
    row = found or await office.load(actor, hold)
    while placed_is_due(row, now := office.now()):
        await office.store.change_hold(placed_decision_change(row, now))
        row = await office.load(actor, hold)
    return row


async def load_visible(office: HoldContext, actor: Actor, hold: str) -> HoldRow:
    """The hold, for somebody who may see it. Raises HoldNotFoundError, ForbiddenError."""
    row = await load(office, actor, hold)
    try:
        await office.permit(actor, "view", row, office.now())
    except (ForbiddenError, ConflictError) as error:
        await record_refusal(office, actor, row, "view", error)
        raise
    return row


async def record_refusal(
    office: HoldContext,
    actor: Actor,
    row: HoldRow,
    action: str,
    error: HoldfastError,
    *,
    said: Submission | None = None,
) -> None:
    """In the audit, with what the refused had filled in as their draft; the row stays as it is."""
    now = office.now()
    drafts = () if isinstance(error, ForbiddenError) else await _drafts(office, row, actor, said, now)
    data = {"action": action, "code": error.code, "status": error.status}
    refused = entry(row, actor.id, "refused", now, **data)
    made = HoldChange(hold=row.id, version=row.version, at=now, audit=(refused,), notes=drafts)
    kept = isinstance(await office.store.change_hold(_as_agent(made, actor)), HoldRow) and bool(drafts)
    error.facts["your_draft_saved"] = kept
    if kept and isinstance(error, HoldDecidedError):
        error.hint = "What you had filled in is kept as your draft."


def _as_agent(made: HoldChange, actor: Actor) -> HoldChange:
    """What was done for an agent is told apart in the audit, whosever credential it has."""
    if actor.channel not in AGENT_CHANNELS:
        return made
    said = [
        msgspec.structs.replace(
            each, data=canonical({**msgspec.json.decode(each.data), "channel": actor.channel})
        )
        for each in made.audit
    ]
    return msgspec.structs.replace(made, audit=tuple(said))


async def _drafts(
    office: HoldContext, row: HoldRow, actor: Actor, said: Submission | None, now: int
) -> tuple[Note, ...]:
    """Of what can be kept: people only, and nothing that is no JSON or too large. What was filled in before
    stays where it was not sent again: a slip of the hand costs nobody their work."""
    if said is None or said.is_empty or actor.is_system or actor.is_service:
        return ()
    before = await draft_of(office, row, actor) or Submission()
    given = {name: value for name in said.__struct_fields__ if (value := getattr(said, name)) is not None}
    try:
        return (draft_note(row, actor, msgspec.structs.replace(before, **given), now),)
    except InputError:
        return ()


async def draft_of(office: HoldContext, row: HoldRow, actor: Actor) -> Submission | None:
    """One's own."""
    for note in await office.store.hold_notes(row.id, kinds=("draft",)):
        if note.slot == person_key(actor.id):
            return msgspec.json.decode(note.body, type=Submission)
    return None


def draft_note(row: HoldRow, actor: Actor, said: Submission, now: int) -> Note:
    """Raises AnswerInvalidError for what is no JSON, ValueTooLargeError."""
    body = encoded(said)
    require_small(msgspec.json.decode(body))
    return Note(hold=row.id, kind="draft", slot=person_key(actor.id), person=actor.id, at=now, body=body)


def _unchanged(why: ChangeRefusal, row: HoldRow) -> HoldfastError:
    if why is ChangeRefusal.link_used:
        return LinkInvalidError(
            "this link was used already.", hint="Open the question to see what was decided.", hold=row.id
        )
    return conflicts.read_only(row) if why is ChangeRefusal.read_only else conflicts.not_found(row.id)
