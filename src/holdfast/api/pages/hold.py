"""The page of a hold: the question, its assignee, its form and the decisions. GET shows, POST decides."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.datastructures import FormData
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.pages.decision_form import (
    FormDraft,
    draft_from,
    draft_with_errors,
    form_sections,
    require_known_fields,
    submission,
)
from holdfast.api.pages.hold_actions import SNOOZE_CHOICES, act_on, page_actions
from holdfast.api.pages.kept_form import KeptForm, forget_form, kept_form
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.render import page, person, redirect, since
from holdfast.api.problems import HttpError, status_of
from holdfast.api.routing import ApiCall
from holdfast.errors import AnswerInvalidError, ForbiddenError, HoldDecidedError, HoldfastError
from holdfast.holds.actions.conflicts import placed_decision, resolution_of
from holdfast.holds.actions.vote import ballots_of
from holdfast.holds.queries.decided_values import decided_values
from holdfast.holds.queries.history import Entry
from holdfast.holds.queries.history_text import short_name
from holdfast.holds.queries.summary import (
    assignee_of,
    claim_of,
    countdown,
    needs_of,
    roughly,
    why_of,
)
from holdfast.holds.service import HoldService
from holdfast.types.hold import HoldRow, label_of
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor

if TYPE_CHECKING:
    from holdfast.holds.policies.shadow import ShadowAnswer

routes = pages()
TECHNICAL = ("entity_id", "effect", "turn")
"""Keys of a question's context that help to debug an agent, but not to answer."""
CHOOSE = "Choose one of the decisions."


class HoldQuery(msgspec.Struct, kw_only=True):
    """`decided`: 1 after the page's form, for the message."""

    decided: str = ""


@routes.get("/holds/{hold}", needs=Right.holds_read)
async def hold_page(call: ApiCall, hold: str, query: HoldQuery) -> Response:
    """A hold, to be read and decided."""
    service = await call.holds()
    row = await service.get(call.actor, hold)
    kept = kept_form(call.request, call.actor.id)
    if kept is not None and kept.act == "decide" and row.status is HoldStatus.pending:
        _, draft = await submission(service, call.actor, row, kept.form)
    else:
        draft = draft_from(row, await service.draft(call.actor, row.id))
    return await _show(call, service, row, draft, kept=kept, decided=query.decided == "1")


@routes.post("/holds/{hold}", needs=Right.holds_write)
async def decide_hold_page(call: ApiCall, hold: str) -> Response:
    """A decision, a comment, or another action of the page."""
    service = await call.holds()
    row = await service.get(call.actor, hold)
    form = await call.form()
    act = str(form.get("act") or "decide")
    if act != "decide":
        return await _act(call, service, row, act, form)
    answer, draft = await submission(service, call.actor, row, form)
    try:
        require_known_fields(row, form)
        if draft.wrong:
            raise AnswerInvalidError("a file was not accepted.")
        if row.options and answer.decision is None:
            raise AnswerInvalidError(CHOOSE)
        await _decide(
            service, call.actor, row, msgspec.to_builtins(answer), str(form.get("key") or "") or None
        )
    except HoldfastError as error:
        fresh = await service.get(call.actor, hold)
        return await _show(call, service, fresh, draft_with_errors(draft, error), error)
    return forget_form(call.request, redirect(f"/holds/{row.id}?decided=1", call.request))


async def _decide(
    service: HoldService, actor: Actor, row: HoldRow, body: dict[str, Any], key: str | None
) -> None:
    """A hold with an undo window gets a placed decision, which can be undone until the window ends."""
    if row.terms.undo and row.status is HoldStatus.pending:
        await service.place(actor, row.id, body, idempotency_key=key)
    else:
        await service.resolve(actor, row.id, body, idempotency_key=key)


async def _act(call: ApiCall, service: HoldService, row: HoldRow, act: str, form: FormData) -> Response:
    """A person who reassigned the hold may not be allowed to see it any more: then the list is shown."""
    try:
        await act_on(service, call.actor, row, act, form)
    except HttpError:
        raise
    except HoldfastError as error:
        draft = draft_from(row, await service.draft(call.actor, row.id))
        texts = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
        typed = KeptForm(path="", who=call.actor.id, fields=texts)
        fresh = await service.get(call.actor, row.id)
        return await _show(call, service, fresh, draft, error, act=True, kept=typed)
    try:
        await service.get(call.actor, row.id)
    except HoldfastError:
        return redirect("/holds", call.request)
    return forget_form(call.request, redirect(f"/holds/{row.id}", call.request))


async def _show(
    call: ApiCall,
    service: HoldService,
    row: HoldRow,
    draft: FormDraft,
    error: HoldfastError | None = None,
    *,
    act: bool = False,
    kept: KeptForm | None = None,
    decided: bool = False,
) -> Response:
    """`act`: the action that failed was not a decision. `kept`: the form is filled in with what was typed
    before the session ended."""
    may = await may_decide(service, call.actor, row)
    return page(
        call.request,
        "hold.html",
        who=call.who,
        status=200 if error is None else status_of(error),
        may=may,
        error=error,
        decided=decided,
        history=[history_line(each) for each in await service.history(call.actor, row.id)],
        comments=[_comment(each) for each in await service.comments(call.actor, row.id)],
        shadow=await _shadow(call, service, row),
        votes=[] if row.terms.approval.mode == "any" else await ballots_of(service.ctx, row),
        sees_run=call.who.may(Right.runs_read),
        action=f"/holds/{row.id}",
        csrf=call.who.csrf,
        link=None,
        act=act,
        kept=kept,
        ways=await page_actions(service, call.who, row),
        snooze_times=[(value, option) for value, (option, _) in SNOOZE_CHOICES.items()],
        **hold_context(row, service.store.now(), draft, error)
        | {"why": _why(row, await service.why(call.actor, row.id))},
    )


async def _shadow(call: ApiCall, service: HoldService, row: HoldRow) -> tuple[ShadowAnswer, str] | None:
    """What a judge had answered, with the label of its option; only after the decision."""
    if row.terms.shadow is None or row.status not in (HoldStatus.resolved, HoldStatus.expired):
        return None
    found = await service.shadow(call.actor, row.id)
    if found is None:
        return None
    return found, label_of(row.options, found.decision or "")


def hold_context(row: HoldRow, now: int, draft: FormDraft, error: HoldfastError | None) -> dict[str, Any]:
    """The content of a hold's page, opened from the inbox or by a link."""
    context: Any = msgspec.json.decode(row.context)
    plain = not isinstance(context, dict)
    about = msgspec.convert(({"context": context} if context else {}) if plain else context, dict[str, Any])
    return {
        "row": row,
        "now": now,
        "open": row.status is HoldStatus.pending and not row.read_only,
        "outcome": outcome_text(row, now),
        "resolution": resolution_of(row),
        "values": decided_values(row),
        "placed": _placed(row, now),
        "claimed": _claim(row, now),
        "due": countdown(row, now) if row.status is HoldStatus.pending else "",
        "why": _why(row, why_of(row)),
        "needs": needs_of(row),
        "context": {name: value for name, value in about.items() if name not in TECHNICAL},
        "technical": {name: value for name, value in about.items() if name in TECHNICAL},
        "asked": form_sections(row, draft),
        "draft": draft,
        "late": isinstance(error, HoldDecidedError),
        "key": secrets.token_urlsafe(18),
        "vote_label": partial(label_of, row.options),
        "comment_for": [each.text for each in row.options or () if each.requires_comment is True],
    }


def outcome_text(row: HoldRow, now: int) -> str:
    """Its outcome as a sentence; empty while it is open."""
    if row.status is HoldStatus.pending:
        return ""
    by, at = row.resolved_by or row.closed_by, row.resolved_at or row.closed_at
    ago = f", {since(at, now)}" if at else ""
    if row.status is not HoldStatus.resolved:
        expired = row.status is HoldStatus.expired
        what = "The deadline passed without an answer" if expired else "Withdrawn"
        why = f": {row.closed_reason}" if row.closed_reason and not expired else ""
        return f"{what}{ago}{why}."
    resolution = resolution_of(row)
    chosen = resolution.get("effective_decision") or resolution.get("decision")
    label = label_of(row.options, str(chosen or ""))
    return f"{person(by or 'Holdfast')} decided “{label}”{ago}."


def _placed(row: HoldRow, now: int) -> str:
    """A decision that can still be undone, by the label of its option; empty if there is none."""
    if row.placed is None or row.placed_until is None:
        return ""
    chosen = placed_decision(row)
    label = label_of(row.options, chosen or "") or "Send"
    left = roughly(row.placed_until - now)
    return f"{short_name(row.placed_by or '')} decided: {label}. It is final in {left}"


def _claim(row: HoldRow, now: int) -> str:
    """`kim is working on it (29 min left)`."""
    if not claim_of(row, now):
        return ""
    left = "" if row.claim_until is None else f" ({roughly(row.claim_until - now)} left)"
    return f"{short_name(row.claimed_by or '')} is working on it{left}"


def _why(row: HoldRow, why: str) -> str:
    if row.assignee_type == "unrouted" and not row.assignee_reason:
        return "Unassigned."
    whom = assignee_of(row)
    text = why.replace(whom, short_name(whom))
    return f"{text[:1].upper()}{text[1:]}."


async def may_decide(service: HoldService, actor: Actor, row: HoldRow) -> bool:
    """Whether to show the buttons; the decision itself checks the permission again."""
    if row.status is not HoldStatus.pending or row.read_only:
        return False
    now = service.store.now()
    try:
        standing = await service.ctx.standing(actor, now)
    except ForbiddenError:
        return False
    # By the rule of deciding without `step_up`: the form is shown, and its answer leads to the sign-in.
    return await service.ctx.may(standing, "ask_back", row, now)


def history_line(entry: Entry) -> dict[str, str]:
    return {"at": entry.at, "text": entry.text}


def _comment(note: Any) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(note.body)
    asked = f"asked {short_name(str(body.get('to', '')))}".strip()
    verb = {"comment": "commented", "question": asked, "reply": "replied"}[note.kind]
    return {"who": note.person, "verb": verb, "text": body.get("text", ""), "at": note.at}
