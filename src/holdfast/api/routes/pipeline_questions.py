"""Questions of pipelines: gates, and all other holds of their runs (section 9.5 of the specification)."""

from __future__ import annotations

from holdfast.api.auth.rights import Right
from holdfast.api.pipelines import document_of, find_pipeline
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.pipelines import AnswerQuestion, AnswerTaken, QuestionList, question_wire
from holdfast.attractor.human_gates import Gate, gate_of
from holdfast.attractor.interviewers import Answer, AnswerValue
from holdfast.errors import (
    AnswerInvalidError,
    ConflictError,
    ForbiddenError,
    HoldNotFoundError,
    RunNotFoundError,
)
from holdfast.frontends.dot.handler_kinds import kind_of
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.text import clean_text

routes = Routes("pipelines")

_MISSING = (RunNotFoundError,)


@routes.get("/pipelines/{run}/questions", needs=Right.holds_read, raises=_MISSING)
async def list_questions(call: ApiCall, run: str) -> QuestionList:
    """A pipeline's open questions that you may see."""
    service, row = await find_pipeline(call, run)
    # Front ends ask again and again: questions that the caller may not see are no refused attempts.
    asked = await service.people.visible(call.actor, await service.questions(row.id))
    return QuestionList(items=[question_wire(hold, await _gate(service, hold)) for hold in asked])


@routes.post(
    "/pipelines/{run}/questions/{hold}/answer",
    needs=Right.holds_write,
    keyed=True,
    raises=(*_MISSING, HoldNotFoundError, AnswerInvalidError, ConflictError, ForbiddenError),
)
async def answer_question(call: ApiCall, run: str, hold: str, body: AnswerQuestion) -> AnswerTaken:
    """Answer a question of a pipeline.

    The first answer counts: 409 for later ones, with the person of the first. 422 for an unknown answer."""
    service, row = await find_pipeline(call, run)
    asked = await _find_question(call, service, row, hold)
    gate = await _gate(service, asked)
    people, actor = await call.holds(), call.actor
    if body.value == AnswerValue.SKIPPED and gate is not None:
        return _answer_taken(await people.cancel(actor, asked.id, reason=body.comment or "skipped"), None)
    decision = _decision(asked, gate, Answer(value=body.value, text=body.text))
    submission = {"decision": decision, **({} if body.comment is None else {"comment": body.comment})}
    done = await people.resolve(actor, asked.id, submission, idempotency_key=call.key)
    return _answer_taken(done.row, decision)


async def _gate(service: RunService, hold: HoldRow) -> Gate | None:
    """Of the run that asks: of a manager, its child."""
    pipeline = await document_of(service, await service.get(hold.run))
    stage = pipeline.stages.get(hold.node)
    return None if stage is None or kind_of(stage) != "wait.human" else gate_of(stage, pipeline)


async def _find_question(call: ApiCall, service: RunService, row: RunRow, hold: str) -> HoldRow:
    """Raises HoldNotFoundError, also for the run of another tenant."""
    found = await service.store.hold(HoldId(hold))
    if found is not None and found.run != row.id:
        asked = [each.id for each in await service.questions(row.id)]
        found = found if found.id in asked else None
    if found is None:
        raise HoldNotFoundError(
            f"pipeline {row.id} has not asked {hold!r}.",
            hint="Its `questions` lists the open ones.",
            hold=hold,
        )
    # The permission is checked first: an error about the answer would reveal the options.
    return await service.people.get(call.actor, found.id)


def _decision(asked: HoldRow, gate: Gate | None, answer: Answer) -> str:
    """Raises AnswerInvalidError."""
    text = answer.value or answer.text
    decision = _option_for(asked, text) if gate is None else gate.decision(answer)
    if decision is None:
        ids = [option.id for option in asked.options or ()]
        hint = f"Choose one of: {', '.join(ids)}." if ids else "Send `text`."
        message = f"{clean_text(repr(text), 80)} is not one of the answers to {asked.prompt!r}."
        raise AnswerInvalidError(message, hint=hint, options=ids)
    return decision


def _option_for(asked: HoldRow, text: str) -> str | None:
    """The answer to a question that is not a gate's: an option's id or label; without options any text."""
    if asked.options is None:
        return text or None
    meant = text.strip().casefold()
    names = {each.id: (each.id.casefold(), each.label.casefold()) for each in asked.options}
    fits = [name for name, known in names.items() if meant in known]
    return fits[0] if len(fits) == 1 else None


def _answer_taken(row: HoldRow, decision: str | None) -> AnswerTaken:
    by = row.resolved_by or row.closed_by
    return AnswerTaken(id=row.id, status=str(row.status), decision=decision, resolved_by=by)
