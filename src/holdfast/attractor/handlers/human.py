"""A gate: a person chooses among its outgoing edges. The question is a hold: no process waits for it.

An interviewer that is here is asked as well; whoever decides the hold first has decided it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.attractor.gates import Choice, Gate, gate_of
from holdfast.attractor.handler import Visit
from holdfast.attractor.interview import interview
from holdfast.attractor.interviewers import (
    Answer,
    AnswerValue,
    AutoApproveInterviewer,
    Interviewer,
    QuestionType,
)
from holdfast.attractor.outcome import Outcome, StageStatus
from holdfast.errors import HoldCancelledError, HoldExpiredError
from holdfast.runs.context.questions import Reply

AUTO_KEY = "internal.auto_approve"
"""In the run's input: whoever started it asked for every gate to be passed by its first choice."""
ASKED, INTERVIEWED = "gate", "interview"
NO_EDGES = "No outgoing edges for human gate"
TIMED_OUT, SKIPPED = "human gate timeout, no default", "human skipped interaction"


class HumanHandler:
    def __init__(self, interviewer: Interviewer | None = None) -> None:
        self._interviewer = interviewer

    async def perform(self, visit: Visit) -> Outcome:
        gate = gate_of(visit.stage, visit.pipeline)
        if not gate.choices:
            return Outcome(status=StageStatus.FAIL, failure_reason=NO_EDGES, terminal=True)
        asking = asyncio.ensure_future(_ask(visit, gate))
        asked = asyncio.ensure_future(self._interview(visit, gate, asking))
        try:
            reply = await asking
        except HoldExpiredError:
            return timed_out(gate)
        except HoldCancelledError:
            said = await asked
            return timed_out(gate) if said == AnswerValue.TIMEOUT else _skipped()
        finally:
            await _end(asking, asked)
        return answered(gate, reply)

    async def _interview(self, visit: Visit, gate: Gate, asking: asyncio.Future[Reply]) -> str:
        """What the interviewer said: recorded, so that one that is gone by the next entry has said it."""
        who = AutoApproveInterviewer() if visit.given.get(AUTO_KEY) else self._interviewer
        if who is None and visit.ctx.recorded(INTERVIEWED) is None:
            return ""
        found: Any = await visit.ctx.step(
            INTERVIEWED, interview, visit, gate, who, asking, effect="read", key=INTERVIEWED
        )
        return msgspec.convert(found, Answer).value


async def _ask(visit: Visit, gate: Gate) -> Reply:
    return await visit.ctx.ask(
        gate.text,
        options=gate.options(),
        timeout=gate.timeout,
        context=_shown(visit, gate),
        key=ASKED,
        on_cancel="raise",
        **gate.terms,
    )


def _shown(visit: Visit, gate: Gate) -> dict[str, Any]:
    """What a person sees beside the question."""
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


def answered(gate: Gate, reply: Reply) -> Outcome:
    """As the hold was decided."""
    decision = str(reply.decision)
    chosen = gate.decided(decision)
    more: dict[str, Any] = {"human.gate.by": reply.by or "", "human.gate.comment": reply.comment or ""}
    if gate.type is QuestionType.FREEFORM:
        more["human.gate.text"] = decision
        if chosen is None:
            more |= {"human.gate.selected": "", "human.gate.label": ""}
            return Outcome(context_updates=more, notes=f"answered: {decision[:200]}")
    if chosen is None:
        return Outcome(
            status=StageStatus.FAIL, failure_reason="human answered no", context_updates=more, terminal=True
        )
    return _along(chosen, more)


def _along(choice: Choice, more: dict[str, Any] | None = None) -> Outcome:
    return Outcome(
        preferred_label=choice.label if choice.plain else "",
        suggested_next_ids=(choice.to,),
        context_updates={
            "human.gate.selected": choice.key,
            "human.gate.label": choice.label,
            **(more or {}),
        },
    )


def timed_out(gate: Gate) -> Outcome:
    if gate.default is not None:
        return _along(gate.default, {"human.gate.by": "timeout"})
    return Outcome(status=StageStatus.RETRY, failure_reason=TIMED_OUT)


def _skipped() -> Outcome:
    return Outcome(status=StageStatus.FAIL, failure_reason=SKIPPED, terminal=True)
