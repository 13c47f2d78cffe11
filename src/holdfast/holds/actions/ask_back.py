"""Asking back: a question about a hold. The hold's deadline is paused until it is answered."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import ForbiddenError, InputError, NotFoundError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.audit_entries import ASKED_BACK, QUESTION_DROPPED, REPLIED, entry, event, message
from holdfast.holds.actions.change import change
from holdfast.holds.actions.context import HoldContext, Permit
from holdfast.holds.actions.submission import require_comment
from holdfast.holds.permissions.assignees import parse_assignee, person_key, same_person
from holdfast.holds.permissions.permission_facts import agent_of, asked_of
from holdfast.holds.timing.reminders import next_reminder
from holdfast.types import outbox
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.ids import new_id
from holdfast.types.schedule import person_behind
from holdfast.types.terms import Actor
from holdfast.types.text import require_text

REQUESTER: Final = "requester"
AGENT: Final = "agent"


async def ask_back(
    ctx: HoldContext,
    actor: Actor,
    hold: str,
    text: str,
    *,
    to: str = REQUESTER,
    id: str | None = None,  # noqa: A002
) -> HoldRow:
    """Ask the requester (the starter of the run), the agent, or a colleague (`user:...`). The assignee does
    not change, and no reminders are sent until the answer.

    Raises InputError if there is no such person, or it is the caller."""
    slot = id or new_id()

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await ctx.permit(actor, "ask_back", row, now)
        conflicts.require_open(row)
        conflicts.require_undecided(row, actor.id, now)
        whom = _whom(row, actor, to)
        body = {"text": _words(text, "a question"), "to": whom}
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            # With several open questions the pause counts from the first one.
            fields={"paused_at": row.paused_at or now, "remind_at": None},
            audit=(entry(row, actor.id, "asked_back", now, to=whom, question=slot),),
            notes=(_note(row, actor, "question", slot, body, now), _asked(row, whom, now)),
            outbox=(message(row, outbox.ASKED_BACK, number=slot, question=slot, to=whom, by=actor.id),),
            event=event(row, ASKED_BACK, now, by=actor.id, to=whom),
        )

    return await change(ctx, actor, hold, "ask_back", decide)


async def reply(
    ctx: HoldContext, actor: Actor, hold: str, text: str, *, question: str | None = None
) -> HoldRow:
    """Answer a question that was asked back. After the last answer the deadline moves by the length of the
    pause.

    `question`: its id, if several are open. Raises NotFoundError if none is."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        permit = await ctx.permit(actor, "reply", row, now)
        conflicts.require_open(row)
        pending = await open_questions(ctx, row)
        asked = _meant(row, actor, permit, pending, question)
        body = {"text": _words(text, "an answer"), "to": asked.person}
        facts: dict[str, Any] = {"question": asked.slot, "to": asked.person, "by": actor.id, "reply": True}
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            fields=_one_less(row, now, pending),
            audit=(entry(row, actor.id, "replied", now, question=asked.slot),),
            notes=(_note(row, actor, "reply", asked.slot, body, now),),
            drop_notes=_no_longer_asked(asked, pending),
            outbox=(message(row, outbox.ASKED_BACK, number=f"{asked.slot}:reply", **facts),),
            event=event(row, REPLIED, now, by=actor.id),
        )

    return await change(ctx, actor, hold, "reply", decide)


async def withdraw_question(
    ctx: HoldContext, actor: Actor, hold: str, *, question: str | None = None
) -> HoldRow:
    """Withdraw a question: for its author, and for actors who may decide or manage the hold. It needs no
    answer any more, and the deadline continues.

    `question`: its id, if several are open. Raises NotFoundError if none is."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        permit = await ctx.permit(actor, "view", row, now)
        conflicts.require_open(row)
        pending = await open_questions(ctx, row)
        whose = pending
        if not any(ctx.ask(permit, act, row, now).allowed for act in ("ask_back", "extend")):
            whose = [note for note in pending if same_person(note.person, actor.id)]
            if pending and not whose:
                raise ForbiddenError("only its author can withdraw this question.", hold=row.id)
        asked = _the_one(row, whose, question)
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            fields=_one_less(row, now, pending),
            audit=(entry(row, actor.id, "question_dropped", now, question=asked.slot),),
            drop_notes=(("question", asked.slot), *_no_longer_asked(asked, pending)),
            event=event(row, QUESTION_DROPPED, now, by=actor.id),
        )

    return await change(ctx, actor, hold, "withdraw_question", decide)


async def open_questions(ctx: HoldContext, row: HoldRow) -> list[Note]:
    notes = await ctx.store.hold_notes(row.id, kinds=("question", "reply"))
    answered = {note.slot for note in notes if note.kind == "reply"}
    return [note for note in notes if note.kind == "question" and note.slot not in answered]


def _whom(row: HoldRow, actor: Actor, to: str) -> str:
    whom = {REQUESTER: person_behind(row.started_by), AGENT: agent_of(row)}.get(to, to)
    if whom is None:
        raise InputError(
            f"the starter of the run of hold {row.id} is not known.",
            hint="Ask the agent, or a colleague: user:NAME.",
            hold=row.id,
        )
    if to not in (REQUESTER, AGENT):
        found = parse_assignee(to)
        if found.type != "user":
            raise InputError(f"{to!r} is not a single person.", hint="Write user:NAME.", hold=row.id)
        whom = str(found)
    if same_person(whom, actor.id):
        raise InputError("you cannot ask yourself.", hint="Name another person.", hold=row.id)
    return whom


def _meant(row: HoldRow, actor: Actor, permit: Permit, pending: list[Note], question: str | None) -> Note:
    theirs = pending
    if permit.verdict.authority == "asked":
        theirs = [note for note in pending if same_person(asked_of(note), actor.id)]
        if not theirs and any(question in (None, note.slot) for note in pending):
            raise ForbiddenError("this question was put to another person.", hold=row.id)
    return _the_one(row, theirs, question)


def _the_one(row: HoldRow, notes: list[Note], question: str | None) -> Note:
    found = [note for note in notes if question in (None, note.slot)]
    if not found:
        raise NotFoundError(f"hold {row.id} has no such open question.", hold=row.id)
    if len(found) > 1:
        ids = [note.slot for note in found]
        raise InputError(
            f"{len(ids)} questions are open.",
            hint=f"Give the id of one of them: {', '.join(ids)}.",
            questions=ids,
        )
    return found[0]


def _one_less(row: HoldRow, now: int, pending: list[Note]) -> dict[str, Any]:
    """After the last question the deadline continues."""
    return _resumed(row, now) if len(pending) == 1 else {"paused_at": row.paused_at}


def _asked(row: HoldRow, whom: str, now: int) -> Note:
    """The note by which a list finds the questions to a person."""
    return Note(hold=row.id, kind="asked", slot=person_key(whom), person=whom, at=now)


def _no_longer_asked(answered: Note, pending: list[Note]) -> tuple[tuple[str, str], ...]:
    """The note of the person who was asked, unless another question waits for their answer."""
    whom = person_key(asked_of(answered))
    left = [note for note in pending if note.slot != answered.slot and person_key(asked_of(note)) == whom]
    return () if left else (("asked", whom),)


def _resumed(row: HoldRow, now: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"paused_at": None, "remind_at": next_reminder(row, now)}
    if row.expires_at is not None and row.paused_at is not None:
        fields["expires_at"] = row.expires_at + now - row.paused_at
    return fields


def _words(text: str, what: str) -> str:
    words = require_text(text, what).strip()
    if not words:
        raise InputError(f"{what} must not be empty.")
    return require_comment(words)


def _note(row: HoldRow, actor: Actor, kind: str, slot: str, body: dict[str, Any], now: int) -> Note:
    return Note(hold=row.id, kind=kind, slot=slot, person=actor.id, at=now, body=msgspec.json.encode(body))
