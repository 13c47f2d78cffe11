"""Plain words as an answer: from a chat, a mail, or an old client without holds (R-66)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.errors import AnswerInvalidError, ConflictError, HoldNotFoundError, KeyReusedError
from holdfast.types.hold import UNASKED
from holdfast.types.ids import HoldId, RunId

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.types.hold import HoldRow
    from holdfast.types.terms import Actor


async def answer_text(
    service: RunAccess,
    run: str,
    content: str | Mapping[str, Any],
    *,
    hold: str | None,
    by: str,
    actor: Actor | None = None,
    key: str | None = None,
) -> HoldRow:
    """Answer the open question of a run. A mapping is the answer itself: decision, response_data, comment.
    `actor`: who answers, by their credential; without, the operator of the store. `key`: what they send
    again under it counts once, whatever the run asks by then.

    Raises AnswerInvalidError for words that fit no option, ConflictError where several questions are open and
    none is named, HoldNotFoundError where none is, HoldDecidedError where another answer was first,
    KeyReusedError where the key was used for another question or answer.
    """
    row = await service.get(run)
    answered_before = (
        None if actor is None or key is None else await answered_under_key(service, row.id, actor, key)
    )
    if answered_before is not None and hold not in (None, answered_before.id):
        raise KeyReusedError(
            f"the idempotency key {key!r} was used for the answer to another question of this run.",
            hint="Use a new key for a new answer.",
            hold=hold,
        )
    asked = answered_before or await _question(service, row.id, hold)
    if actor is not None:
        answer = await _answer_as(service, actor, asked, content)
        return (await service.people.resolve(actor, asked.id, answer, idempotency_key=key)).row
    if isinstance(content, Mapping):
        decision = content.get("decision")
        data, comment = content.get("response_data"), content.get("comment")
        return await service.answer(asked.id, decision, data=data, comment=comment, by=by)
    return await service.answer(asked.id, _decision(asked, content), by=by)


async def require_answerable(
    service: RunAccess, run: str, content: str | Mapping[str, Any], *, hold: str, actor: Actor, key: str
) -> None:
    """Raises as `answer_text` would for this answer; nothing is decided."""
    asked = await _question(service, run, hold)
    answer = await _answer_as(service, actor, asked, content)
    await service.people.require_resolvable(actor, asked.id, answer, idempotency_key=key)


async def _answer_as(
    service: RunAccess, actor: Actor, asked: HoldRow, content: str | Mapping[str, Any]
) -> str | Mapping[str, Any]:
    # Access is checked first: the options are shown to no one else.
    await service.people.get(actor, asked.id)
    return content if isinstance(content, Mapping) else _decision(asked, content)


async def answered_under_key(service: RunAccess, run: RunId, actor: Actor, key: str) -> HoldRow | None:
    """The question of a run that this actor has answered with that key."""
    for hold in await service.holds(run, open_only=False):
        if hold.resolved_by is not None and await service.store.hold_key(hold.id, actor.id, key):
            return hold
    return None


async def _question(service: RunAccess, run: str, hold: str | None) -> HoldRow:
    if hold is not None:
        named = await service.store.hold(HoldId(hold))
        if named is None or named.run != run:
            raise HoldNotFoundError(
                f"run {run} has not asked {hold!r}.",
                hint="`holdfast holds list` lists the open holds.",
                hold=hold,
            )
        return named
    # A breakpoint is not a question: a person who debugs names it.
    found = [each for each in await service.holds(RunId(run)) if each.type not in UNASKED]
    if not found:
        raise HoldNotFoundError(f"run {run} has no open question.", hint="Answer when it asks.", run=run)
    if len(found) > 1:
        listed = "; ".join(f"{each.id}: {each.prompt}" for each in found)
        raise ConflictError(
            f"run {run} has {len(found)} open questions.",
            hint=f"Name the one that you answer. {listed}",
            holds=[each.id for each in found],
        )
    return found[0]


def _decision(asked: HoldRow, words: str) -> str:
    """An option is matched by its id, then by its label, ignoring case; without options the words are the
    answer."""
    if not asked.options:
        return words
    meant = words.strip().casefold()
    for names in ([o.id for o in asked.options], [o.label for o in asked.options]):
        fits = [o.id for o, name in zip(asked.options, names, strict=True) if name.casefold() == meant]
        if len(fits) == 1:
            return fits[0]
    ids = [option.id for option in asked.options]
    raise AnswerInvalidError(
        f"{words!r} is not one of the answers to {asked.prompt!r}.",
        hint=f"Choose one of: {', '.join(ids)}.",
        options=ids,
    )
