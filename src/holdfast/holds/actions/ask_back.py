"""Asking back: a question about a question. The deadline stands still until it is answered."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import ForbiddenError, InputError, NotFoundError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.answers import require_comment
from holdfast.holds.actions.audit_entries import ASKED_BACK, QUESTION_DROPPED, REPLIED, entry, event, message
from holdfast.holds.actions.change import change
from holdfast.holds.actions.context import HoldContext, Permit
from holdfast.holds.permissions.assignees import parse_assignee, person_key, same_person
from holdfast.holds.permissions.past import agent_of, asked_of
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
    office: HoldContext,
    actor: Actor,
    hold: str,
    text: str,
    *,
    to: str = REQUESTER,
    id: str | None = None,  # noqa: A002
) -> HoldRow:
    """Ask the requester (whoever started the run), the agent, or a colleague (`user:...`). The hold stays
    where it is; nobody is reminded meanwhile.

    Raises InputError for nobody, or for oneself."""
    slot = id or new_id()

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await office.permit(actor, "ask_back", row, now)
        conflicts.require_open(row)
        conflicts.require_undecided(row, actor.id, now)
        whom = _whom(row, actor, to)
        body = {"text": _words(text, "a question"), "to": whom}
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            fields={"paused_at": row.paused_at or now, "remind_at": None},
            audit=(entry(row, actor.id, "asked_back", now, to=whom, question=slot),),
            notes=(_note(row, actor, "question", slot, body, now), _asked(row, whom, now)),
            outbox=(message(row, outbox.ASKED_BACK, number=slot, question=slot, to=whom, by=actor.id),),
            event=event(row, ASKED_BACK, now, by=actor.id, to=whom),
        )

    return await change(office, actor, hold, "ask_back", decide)


async def reply(
    office: HoldContext, actor: Actor, hold: str, text: str, *, question: str | None = None
) -> HoldRow:
    """Answer what was asked back. With the last answer the deadline moves by as long as it stood still.

    `question`: which one, where several are open. Raises NotFoundError where none is."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        permit = await office.permit(actor, "reply", row, now)
        conflicts.require_open(row)
        pending = await open_questions(office, row)
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

    return await change(office, actor, hold, "reply", decide)


async def drop_question(
    office: HoldContext, actor: Actor, hold: str, *, question: str | None = None
) -> HoldRow:
    """Take back what was asked: for whoever asked it, and whoever may decide or arrange the hold. Nobody has
    to answer it any more, and the deadline goes on.

    `question`: which one, where several are open. Raises NotFoundError where none is."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        permit = await office.permit(actor, "view", row, now)
        conflicts.require_open(row)
        pending = await open_questions(office, row)
        whose = pending
        if not any(office.ask(permit, act, row, now).allowed for act in ("ask_back", "extend")):
            whose = [note for note in pending if same_person(note.person, actor.id)]
            if pending and not whose:
                raise ForbiddenError("that question was asked by somebody else.", hold=row.id)
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

    return await change(office, actor, hold, "drop_question", decide)


async def open_questions(office: HoldContext, row: HoldRow) -> list[Note]:
    notes = await office.store.hold_notes(row.id, kinds=("question", "reply"))
    answered = {note.slot for note in notes if note.kind == "reply"}
    return [note for note in notes if note.kind == "question" and note.slot not in answered]


def _whom(row: HoldRow, actor: Actor, to: str) -> str:
    whom = {REQUESTER: person_behind(row.started_by), AGENT: agent_of(row)}.get(to, to)
    if whom is None:
        raise InputError(
            f"nobody is known to have started the run of hold {row.id}.",
            hint="Ask the agent, or a colleague by name.",
            hold=row.id,
        )
    if to not in (REQUESTER, AGENT):
        found = parse_assignee(to)
        if found.type != "user":
            raise InputError(f"{to!r} is no one person to ask.", hint="Write user:NAME.", hold=row.id)
        whom = str(found)
    if same_person(whom, actor.id):
        raise InputError("one does not ask back to oneself.", hint="Ask somebody else.", hold=row.id)
    return whom


def _meant(row: HoldRow, actor: Actor, permit: Permit, pending: list[Note], question: str | None) -> Note:
    theirs = pending
    if permit.verdict.authority == "asked":
        theirs = [note for note in pending if same_person(asked_of(note), actor.id)]
        if not theirs and any(question in (None, note.slot) for note in pending):
            raise ForbiddenError("that question was put to somebody else.", hold=row.id)
    return _the_one(row, theirs, question)


def _the_one(row: HoldRow, notes: list[Note], question: str | None) -> Note:
    found = [note for note in notes if question in (None, note.slot)]
    if not found:
        raise NotFoundError(f"nothing of the kind was asked back about hold {row.id}.", hold=row.id)
    if len(found) > 1:
        ids = [note.slot for note in found]
        raise InputError(
            f"{len(ids)} questions are open.", hint=f"Name the one: {', '.join(ids)}.", questions=ids
        )
    return found[0]


def _one_less(row: HoldRow, now: int, pending: list[Note]) -> dict[str, Any]:
    """With the last question the deadline goes on."""
    return _resumed(row, now) if len(pending) == 1 else {"paused_at": row.paused_at}


def _asked(row: HoldRow, whom: str, now: int) -> Note:
    """By which a list finds what somebody was asked."""
    return Note(hold=row.id, kind="asked", slot=person_key(whom), person=whom, at=now)


def _no_longer_asked(answered: Note, pending: list[Note]) -> tuple[tuple[str, str], ...]:
    """Of whoever was asked it, where nothing else awaits their answer."""
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
