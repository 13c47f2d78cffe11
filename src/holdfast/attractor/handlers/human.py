"""A gate: a person chooses one of its outgoing edges. The question is a hold: no process waits for it.

An interviewer in this process is asked as well; the first answer decides the hold.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import msgspec

from holdfast.attractor.handler import StageVisit
from holdfast.attractor.human_gates import Gate, GateChoice, gate_of
from holdfast.attractor.interview import interview
from holdfast.attractor.interviewers import (
    Answer,
    AnswerValue,
    AutoApproveInterviewer,
    Interviewer,
    QuestionType,
)
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.errors import HoldCancelledError, HoldExpiredError
from holdfast.runs.context.questions import Reply

AUTO_KEY = "internal.auto_approve"
"""In the run's input: every gate is passed by its first choice, as the caller asked."""
ASKED, INTERVIEWED = "gate", "interview"
NO_EDGES = "No outgoing edges for human gate"
TIMED_OUT, SKIPPED = "human gate timeout, no default", "human skipped interaction"

ANSWERS: Final = "human.gate."
"""In the context: how the last gate was answered. Only gates set it."""
UNANSWERED: Final = {"human.gate.selected": "", "human.gate.label": ""}
"""What an earlier gate was answered must not be read as the answer of this one."""


class HumanHandler:
    def __init__(self, interviewer: Interviewer | None = None) -> None:
        self._interviewer = interviewer

    async def perform(self, visit: StageVisit) -> StageOutcome:
        gate = gate_of(visit.stage, visit.pipeline)
        if not gate.choices:
            return StageOutcome(status=StageStatus.FAIL, failure_reason=NO_EDGES, terminal=True)
        asking = asyncio.ensure_future(_ask(visit, gate))
        asked = asyncio.ensure_future(self._interview(visit, gate, asking))
        try:
            reply = await asking
        except HoldExpiredError:
            return timeout_outcome(gate)
        except HoldCancelledError:
            answer = await asked
            return timeout_outcome(gate) if answer == AnswerValue.TIMEOUT else _skipped_outcome()
        finally:
            await _end(asking, asked)
        return reply_outcome(gate, reply)

    async def _interview(self, visit: StageVisit, gate: Gate, asking: asyncio.Future[Reply]) -> str:
        """The interviewer's answer, recorded: it counts even if the interviewer is gone after a resume."""
        who = AutoApproveInterviewer() if visit.given.get(AUTO_KEY) else self._interviewer
        if who is None and visit.ctx.recorded(INTERVIEWED) is None:
            return ""
        found: Any = await visit.ctx.step(
            INTERVIEWED, interview, visit, gate, who, asking, effect="read", key=INTERVIEWED
        )
        return msgspec.convert(found, Answer).value


async def _ask(visit: StageVisit, gate: Gate) -> Reply:
    return await visit.ctx.ask(
        gate.text,
        options=gate.options(),
        timeout=gate.timeout,
        context=_shown(visit, gate),
        key=ASKED,
        on_cancel="raise",
        **gate.terms,
    )


def _shown(visit: StageVisit, gate: Gate) -> dict[str, Any]:
    """What a person sees with the question."""
    shown: dict[str, Any] = {"stage": gate.stage, "question_type": str(gate.type)}
    if visit.pipeline.goal:
        shown["goal"] = visit.pipeline.goal
    last = visit.context.get_string("last_response")
    return {**shown, "last_response": last} if last else shown


async def _end(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):
            await task


def reply_outcome(gate: Gate, reply: Reply) -> StageOutcome:
    """The outcome of the hold's decision."""
    decision = str(reply.decision)
    chosen = gate.decided(decision)
    more: dict[str, Any] = {"human.gate.by": reply.by or "", "human.gate.comment": reply.comment or ""}
    if gate.type is QuestionType.FREEFORM:
        more["human.gate.text"] = decision
        if chosen is None:
            more |= UNANSWERED
            return StageOutcome(context_updates=more, notes=f"answered: {decision[:200]}")
    if chosen is None:
        more |= UNANSWERED
        return StageOutcome(
            status=StageStatus.FAIL, failure_reason="human answered no", context_updates=more, terminal=True
        )
    return _choice_outcome(chosen, more)


def _choice_outcome(choice: GateChoice, more: dict[str, Any] | None = None) -> StageOutcome:
    return StageOutcome(
        preferred_label=choice.label if choice.plain else "",
        suggested_next_ids=(choice.to,),
        context_updates={
            "human.gate.selected": choice.key,
            "human.gate.label": choice.label,
            **(more or {}),
        },
    )


def timeout_outcome(gate: Gate) -> StageOutcome:
    if gate.default is not None:
        return _choice_outcome(gate.default, {"human.gate.by": "timeout"})
    return StageOutcome(status=StageStatus.RETRY, failure_reason=TIMED_OUT, context_updates=dict(UNANSWERED))


def _skipped_outcome() -> StageOutcome:
    return StageOutcome(
        status=StageStatus.FAIL, failure_reason=SKIPPED, terminal=True, context_updates=dict(UNANSWERED)
    )
