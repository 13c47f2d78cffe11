"""Actions of a hold's page besides decisions: reassign, snooze, watch, ask a question, reply."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec
from starlette.datastructures import FormData

from holdfast.api.auth import csrf
from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import Right
from holdfast.api.problems import HttpError
from holdfast.errors import ForbiddenError, InputError
from holdfast.holds.actions.ask_back import open_questions
from holdfast.holds.permissions.assignees import person_key, same_person
from holdfast.holds.service import HoldService
from holdfast.types.clock import micros
from holdfast.types.hold import HoldRow
from holdfast.types.schedule import person_behind
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from holdfast.types.text import one_line

SNOOZE_CHOICES: Final = {
    "1h": ("for an hour", timedelta(hours=1)),
    "4h": ("for four hours", timedelta(hours=4)),
    "1d": ("for a day", timedelta(days=1)),
    "7d": ("for a week", timedelta(days=7)),
}


async def act_on(service: HoldService, actor: Actor, row: HoldRow, act: str, form: FormData) -> None:
    """Raises HttpError for an unknown action, and what the action itself raises."""
    unknown = [name for name in form if name not in _FIELDS]
    if unknown:
        raise InputError(f"the form has no field {one_line(unknown[0], 100)!r}.", hint="Send it again.")
    text = str(form.get("text") or "").replace("\r\n", "\n").strip()
    if act == "comment":
        if text:
            await service.comment(actor, row.id, text)
    elif act == "reassign":
        await service.reassign(actor, row.id, _named(form), reason=text or None)
    elif act == "snooze":
        await service.snooze(actor, row.id, service.store.now() + _how_long(form))
    elif act == "ask_back":
        await service.ask_back(actor, row.id, text, to=str(form.get("to") or "").strip() or "requester")
    elif act == "reply":
        await service.reply(actor, row.id, text, question=str(form.get("question") or "") or None)
    elif act in _PLAIN:
        await getattr(service, act)(actor, row.id)
    else:
        raise HttpError(422, "this page has no such action.", code="invalid_input")


_FIELDS: Final = (csrf.FIELD, "act", "for", "key", "question", "text", "to", "who")
_PLAIN: Final = ("claim", "release", "undo", "watch", "unwatch", "unsnooze")


def _named(form: FormData) -> str:
    found = str(form.get("to") or "").strip()
    if not found:
        raise InputError("the new assignee is missing.", hint="Write user:NAME, group:NAME or role:NAME.")
    return found


def _how_long(form: FormData) -> int:
    found = SNOOZE_CHOICES.get(str(form.get("for") or ""))
    if found is None:
        raise InputError("the snooze time is missing.", hint="Choose one of the times.")
    return micros(found[1])


class HoldPageActions(msgspec.Struct, kw_only=True):
    """The actions that the page offers. `questions`: those that the person may reply to."""

    may_reassign: bool = False
    may_ask: bool = False
    may_note: bool = False
    watched: bool = False
    snoozed_until: int | None = None
    requester: str | None = None
    questions: list[dict[str, str]] = []


async def page_actions(service: HoldService, who: Principal, row: HoldRow) -> HoldPageActions:
    """Only for display: each action checks its permission again."""
    if not who.may(Right.holds_write) or row.read_only:
        return HoldPageActions()
    now, actor = service.store.now(), who.actor
    own = {
        note.kind: note
        for note in await service.store.hold_notes(row.id, kinds=("watch", "snooze"))
        if note.slot == person_key(actor.id)
    }
    snoozed = own["snooze"].until if "snooze" in own else None
    open_still = row.status is HoldStatus.pending
    allowed = await _allowed(service, actor, row, now) if open_still else frozenset[str]()
    return HoldPageActions(
        may_reassign="reassign" in allowed,
        may_ask="ask_back" in allowed,
        may_note=open_still,
        watched="watch" in own,
        snoozed_until=snoozed if snoozed is not None and snoozed > now else None,
        requester=_requester(row, actor),
        questions=await _questions(service, actor, row) if "reply" in allowed else [],
    )


async def _allowed(service: HoldService, actor: Actor, row: HoldRow, now: int) -> frozenset[str]:
    try:
        standing = await service.ctx.standing(actor, now)
    except ForbiddenError:
        return frozenset()
    acts = ("reassign", "ask_back", "reply")
    return frozenset([act for act in acts if await service.ctx.may(standing, act, row, now)])


def _requester(row: HoldRow, actor: Actor) -> str | None:
    """None if the reader started the run."""
    found = person_behind(row.started_by)
    return None if found is None or same_person(found, actor.id) else found


async def _questions(service: HoldService, actor: Actor, row: HoldRow) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for note in await open_questions(service.ctx, row):
        body: dict[str, Any] = msgspec.json.decode(note.body)
        if not same_person(note.person, actor.id):
            found.append({"id": note.slot, "who": note.person, "text": str(body.get("text", ""))})
    return found
