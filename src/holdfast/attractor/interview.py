"""An interviewer's answer decides a hold like any other answer: once, and audited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.attractor.handler import StageVisit, service_here
from holdfast.attractor.human_gates import Gate, gate_of
from holdfast.attractor.interviewers import (
    Answer,
    AnswerValue,
    Interviewer,
    ask_with_timeout,
    inform,
    name_of,
)
from holdfast.attractor.stored_source import pipeline_of
from holdfast.errors import HoldDecidedError
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.handler_kinds import kind_of
from holdfast.holds.service import HoldService
from holdfast.runs.service import RunService
from holdfast.telemetry import log
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus, RunStatus
from holdfast.types.terms import operator

if TYPE_CHECKING:
    from holdfast.app.result import Result
    from holdfast.model.program import Program

CHANNEL, KIND = "interviewer", "wait.human"
_POLL_SECONDS = 0.01


async def interview(
    visit: StageVisit, gate: Gate, interviewer: Interviewer | None, asking: asyncio.Future[Any]
) -> dict[str, Any]:
    """The interviewer's answer; empty if another answer was first."""
    if interviewer is None:
        return msgspec.to_builtins(Answer())
    hold = await _opened(visit, asking)
    if hold is None:
        return msgspec.to_builtins(Answer())
    try:
        answer = await ask_with_timeout(
            interviewer, gate.question({"run": visit.ctx.run_id, "hold": hold.id})
        )
        await decide(service_here().people, gate, hold, interviewer, answer)
    except Exception as error:
        # A failing interviewer must not fail the pipeline: people can still answer.
        text = "the interviewer %s failed (%s: %s): the question stays open"
        log.warning(text, name_of(interviewer), type(error).__name__, error, extra={"run": visit.ctx.run_id})
        return msgspec.to_builtins(Answer())
    return msgspec.to_builtins(answer)


async def _opened(visit: StageVisit, asking: asyncio.Future[Any]) -> HoldRow | None:
    """The gate's question, once it is stored; None if it is already answered."""
    ctx, service = visit.ctx, service_here()
    # Polled: the commit of the question sends no signal to this task.
    while not asking.done():
        await ctx.committed()
        for hold in await service.holds(ctx.run_id):
            if (hold.scope, hold.node, hold.visit) == (ctx.scope, ctx.node, ctx.visit):
                return hold
        await asyncio.sleep(_POLL_SECONDS)
    return None


async def decide(
    people: HoldService, gate: Gate, hold: HoldRow, interviewer: Interviewer, answer: Answer
) -> bool:
    """Whether the answer decides or cancels the hold. An invalid answer leaves it open for people."""
    actor = operator(f"interviewer:{name_of(interviewer)}", tenant=hold.tenant, channel=CHANNEL)
    try:
        if answer.value in (AnswerValue.TIMEOUT, AnswerValue.SKIPPED):
            row = await people.cancel(actor, hold.id, reason=f"interviewer: {answer.value}")
            return row.status is HoldStatus.cancelled
        decision = gate.decision(answer)
        if decision is None:
            text = answer.value or answer.text
            inform(interviewer, f"{text!r} is not one of the answers: the question stays open", gate.stage)
            return False
        await people.resolve(actor, hold.id, decision=decision)
    except HoldDecidedError:
        inform(interviewer, "the question was decided elsewhere", gate.stage)
    return True


async def interview_open(
    service: RunService, run: RunId, pipeline: Pipeline, interviewer: Interviewer
) -> bool:
    """Ask the open gates of a run, one by one, that were entered without an interviewer. Returns whether one
    of them is decided."""
    decided = False
    for hold in await service.holds(run):
        stage = pipeline.stages.get(hold.node)
        if stage is None or kind_of(stage) != KIND:
            continue
        gate = gate_of(stage, pipeline)
        answer = await ask_with_timeout(interviewer, gate.question({"run": run, "hold": hold.id}))
        decided |= await decide(service.people, gate, hold, interviewer, answer)
    return decided


async def advance_and_interview(
    service: RunService,
    program: Program,
    run: RunId,
    interviewer: Interviewer | None,
    advance: Callable[[], Awaitable[Result]],
) -> Result:
    """The stages of a run on an engine are in other processes: the one that follows it has the interviewer,
    and asks whenever the run waits."""
    result, pipeline = await advance(), pipeline_of(program.graph.spec)
    while interviewer is not None and service.runtime.engine is not None:
        if result.status is not RunStatus.pending_input:
            break
        if not await interview_open(service, run, pipeline, interviewer):
            break
        result = await advance()
    return result
