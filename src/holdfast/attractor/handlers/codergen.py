"""Sends a prompt to the backend; prompt and response are kept in the stage's folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.agents.messages import Message, message_from_plain, message_to_plain
from holdfast.attractor import fidelity, run_files
from holdfast.attractor.backends.base import (
    AnyBackend,
    BackendReply,
    PromptRequest,
    as_codergen,
    as_conversing,
    as_durable,
    is_conversing,
    is_durable,
    optional_arguments,
    reserves,
    takes_preamble,
)
from holdfast.attractor.backends.select import Backends
from holdfast.attractor.conversations import ConversationTurn, keep_turn, turns_of
from holdfast.attractor.failures import CLASS_KEY, TERMINAL, failure_of, raise_if_ours
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.preamble import preamble
from holdfast.attractor.stage_history import CALLS
from holdfast.attractor.status_file import (
    AUTO_NOTE,
    NAME,
    StatusFileError,
    forget_status,
    outcome_of,
    read_status,
    status_fields,
)
from holdfast.errors import RequirementsMissingError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.model.calls.boundary import call

SHOWN = 200
"""Characters of an answer that later stages see as `last_response`."""
PREAMBLE = "preamble.md"


class CodergenHandler:
    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    async def perform(self, visit: StageVisit) -> StageOutcome:
        prompt = prompt_of(visit.stage, visit.pipeline)
        run_files.write(visit.folder / "prompt.md", prompt)
        backend = self._backends.of(visit)
        asking = self._asking(visit, prompt, backend)
        if is_conversing(backend):
            reply = await _conversed(backend, asking)
        elif is_durable(backend):
            reply = await _answered(backend, asking)
        else:
            reply = await visit.ctx.step("answer", _answer, backend, asking, effect="read")
        visit.context.apply_updates(reply.get("changes") or {})
        _note_calls(visit, reply)
        if asking.thread and "text" in reply:
            keep_turn(visit, asking.thread, _turn(asking, reply))
        return _outcome(visit, reply)

    def reserves(self, visit: StageVisit) -> bool:
        """Whether its backend reserves its calls itself, so that it may draw on the budget beside others."""
        try:
            return reserves(self._backends.of(visit))
        except RequirementsMissingError:
            return True  # it is not called

    def _asking(self, visit: StageVisit, prompt: str, backend: AnyBackend) -> PromptRequest:
        """With what the stage's fidelity carries over, from the context at this moment."""
        found = fidelity.fidelity_of(visit)
        fidelity.note(visit, found)
        before = preamble(visit, found.mode) if takes_preamble(backend) else ""
        if before:
            run_files.write(visit.folder / PREAMBLE, before)
        turns = tuple(turns_of(visit.context, found.thread)) if found.thread else ()
        return PromptRequest(
            visit=visit,
            prompt=prompt,
            preamble=before,
            thread=found.thread,
            turns=turns,
            refuses=self._backends.refuses,
        )


async def _answer(backend: AnyBackend, asking: PromptRequest) -> dict[str, Any]:
    """The recorded answer: after a crash it is found, and the model is not asked again."""
    visit = asking.visit
    _forget_status(visit)
    before = visit.context.changes()
    try:
        reply = answer_fields(await call_backend(backend, visit, asking.prompt, asking))
    except Exception as error:
        return _failure(error)
    changes = {k: v for k, v in visit.context.changes().items() if before.get(k, ...) != v}
    return {"prompt": asking.prompt, **reply, **_status(visit), "changes": changes}


async def _answered(backend: AnyBackend, asking: PromptRequest) -> dict[str, Any]:
    visit = asking.visit
    await visit.ctx.step("begin", _forget_status, visit, effect="read", key="begin")
    try:
        reply = answer_fields(await as_durable(backend).answer(visit, asking.whole))
    except Exception as error:
        raise_if_ours(error)
        return _failure(error)
    return {
        **reply,
        **await visit.ctx.step("status", _with_exchange, asking, reply, effect="read", key="status"),
    }


async def _conversed(backend: AnyBackend, asking: PromptRequest) -> dict[str, Any]:
    """A written status file takes precedence over the status at the end of the answer."""
    visit = asking.visit
    await visit.ctx.step("begin", _forget_status, visit, effect="read", key="begin")
    try:
        reply = await as_conversing(backend).converse(asking)
    except Exception as error:
        raise_if_ours(error)
        return _failure(error)
    if isinstance(reply, StageOutcome):
        return answer_fields(reply)
    found = _reply_fields(reply)
    return {
        **found,
        **await visit.ctx.step("status", _with_exchange, asking, found, effect="read", key="status"),
    }


def _with_exchange(asking: PromptRequest, reply: Mapping[str, Any]) -> dict[str, Any]:
    """Record prompt and answer: the run directory is written from that record."""
    text = {"text": reply["text"]} if "text" in reply else {}
    return {"prompt": asking.prompt, **text, **_status(asking.visit)}


def _reply_fields(reply: BackendReply) -> dict[str, Any]:
    found: dict[str, Any] = {"text": reply.text, "model": reply.model}
    found["messages"] = [message_to_plain(message) for message in reply.messages]
    if reply.fault:
        found["fault"] = reply.fault
    if reply.status is not None:
        found["status"] = status_fields(outcome_of(reply.status))
    return found


def _note_calls(visit: StageVisit, reply: Mapping[str, Any]) -> None:
    """For summaries: which tools the model called, and how often."""
    counts = Counter(call["name"] for each in reply.get("messages", ()) for call in each.get("calls", ()))
    if counts:
        calls = ", ".join(f"{name} x{count}" for name, count in counts.most_common())
        visit.context.set(CALLS, {"stage": visit.stage.id, "calls": calls})


def _turn(asking: PromptRequest, reply: Mapping[str, Any]) -> ConversationTurn:
    messages = tuple(message_from_plain(plain) for plain in reply.get("messages", ()))
    if not messages:
        messages = (Message("user", asking.prompt), Message("assistant", str(reply["text"])))
    return ConversationTurn(asking.visit.stage.id, messages, str(reply.get("model", "")))


def _outcome(visit: StageVisit, reply: Mapping[str, Any]) -> StageOutcome:
    """The backend's outcome, else the status that the stage wrote, else success (AT-A15)."""
    if "failed" in reply:
        return StageOutcome(
            status=StageStatus.FAIL,
            failure_reason=reply["failed"],
            terminal=reply["class"] == TERMINAL,
            context_updates={CLASS_KEY: reply["class"]},
        )
    if "outcome" in reply:
        return outcome_of(reply["outcome"])
    text = str(reply["text"])
    run_files.write(visit.folder / "response.md", text)
    noted = {"last_stage": visit.stage.id, "last_response": text[:SHOWN]}
    if "fault" in reply:
        return _unusable(reply["fault"], noted)
    if "status" in reply:
        written = outcome_of(reply["status"])
        return replaced(written, context_updates={**noted, **written.context_updates})
    if is_fail_closed(visit.stage, visit.pipeline):
        return _unproven(noted)
    auto = visit.stage.flag("auto_status")
    notes = AUTO_NOTE if auto else f"Stage completed: {visit.stage.id}"
    return StageOutcome(notes=notes, context_updates=noted)


def prompt_of(stage: Stage, pipeline: Pipeline) -> str:
    """The prompt, else the label, with every `$goal` replaced."""
    return (stage.prompt or stage.label).replace("$goal", pipeline.goal)


async def call_backend(
    backend: AnyBackend, visit: StageVisit, prompt: str, asking: PromptRequest | None = None
) -> Any:
    """A sync backend runs in a separate thread, so that it does not block the event loop."""
    run: Any = as_codergen(backend).run
    more = optional_arguments(backend, asking or PromptRequest(visit=visit, prompt=prompt))
    return await call(run, visit.stage, prompt, visit.context, **more)


def answer_fields(answer: Any) -> dict[str, Any]:
    if isinstance(answer, StageOutcome):
        return {"outcome": status_fields(answer)}
    return {"text": "" if answer is None else str(answer)}


def is_fail_closed(stage: Stage, pipeline: Pipeline) -> bool:
    """Fail closed: `auto_status=false` written on a goal gate, or `fail_closed=true` on the graph."""
    if not stage.flag("goal_gate") or stage.flag("auto_status"):
        return False
    return "auto_status" in stage.attrs or pipeline.flag("fail_closed")


def replaced(outcome: StageOutcome, **changes: Any) -> StageOutcome:
    return msgspec.structs.replace(outcome, **changes)


def _failure(error: BaseException) -> dict[str, Any]:
    failed = failure_of(error)
    return {"failed": failed.failure_reason, "class": failed.context_updates[CLASS_KEY]}


def _unusable(fault: str, noted: dict[str, Any]) -> StageOutcome:
    return StageOutcome(status=StageStatus.FAIL, failure_reason=fault, context_updates=noted)


def _unproven(noted: dict[str, Any]) -> StageOutcome:
    reason = f"no {NAME} was written: this goal gate is fail-closed, and a text is not accepted as proof"
    return StageOutcome(status=StageStatus.FAIL, failure_reason=reason, context_updates=noted)


def _forget_status(visit: StageVisit) -> None:
    forget_status(visit.folder)


def _status(visit: StageVisit) -> dict[str, Any]:
    """The status that the stage wrote, to be recorded."""
    try:
        found = read_status(visit.folder)
    except StatusFileError as fault:
        return {"fault": str(fault)}
    return {} if found is None else {"status": status_fields(found)}
