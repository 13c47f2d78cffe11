"""Sends a prompt to the backend; prompt and response are kept in the stage's folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast.agents.messages import Message, message_from_plain, message_to_plain
from holdfast.attractor import fidelity, run_files
from holdfast.attractor.backends.base import (
    AnyBackend,
    BackendReply,
    Exchange,
    PromptRequest,
    as_codergen,
    as_conversation,
    as_conversing,
    as_durable,
    is_conversing,
    is_durable,
    optional_arguments,
    reserves,
    takes_preamble,
)
from holdfast.attractor.backends.call import as_fields, call_once, failure_fields
from holdfast.attractor.backends.select import Backends, require_approvals_kept
from holdfast.attractor.conversations import ConversationTurn, keep_turn, turns_of
from holdfast.attractor.failures import CLASS_KEY, FINAL, failure_of, raise_if_ours
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.long_texts import handled
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.preamble import preamble, since_last_turn
from holdfast.attractor.references import with_references
from holdfast.attractor.stage_history import CALLS
from holdfast.attractor.status_file import AUTO_NOTE, NAME, forget_status, read_status, status_fields
from holdfast.attractor.verdict import (
    CLASS,
    VerdictError,
    VerdictSource,
    block_in,
    checked,
    is_verdict,
    judge,
    outcome_of,
    stray_in,
    structured_in,
    unreadable,
)
from holdfast.attractor.verdict_id import VerdictRequest
from holdfast.attractor.verdict_instruction import FOLLOW_UP, instruction, is_fail_closed, wants_verdict
from holdfast.errors import RequirementsMissingError
from holdfast.model.user_code.boundary import call_alone
from holdfast.runs.steer_messages import place_of
from holdfast.types.text import one_line

SHOWN = 200
"""Characters of an answer that later stages see as `last_response`."""


class CodergenHandler:
    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    async def perform(self, visit: StageVisit) -> StageOutcome:
        prompt = prompt_of(visit)
        run_files.write(visit.folder / "prompt.md", prompt)
        backend = self._backends.of(visit)
        asking = self._asking(visit, prompt, backend)
        reply = await _ask(backend, asking)
        if _lacks_proof(asking, reply):
            reply = await _ask_for_verdict(backend, asking, reply)
        _note_calls(visit, reply)
        if asking.thread and "text" in reply and "failed" not in reply:
            keep_turn(visit, asking.thread, _turn(asking, reply))
        if getattr(backend, "steerable", False) and ("failed" not in reply or visit.ctx.last_try):
            await _tell_late_messages(visit)
        return await handled(len(str(reply.get("text", ""))), _outcome, asking, reply)

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
        turns = tuple(turns_of(visit.context, found.thread)) if found.thread else ()
        before = ""
        if takes_preamble(backend):
            last = turns[-1].number if turns else None
            full = found.mode == fidelity.FULL
            before = since_last_turn(visit, last) if full else preamble(visit, found.mode)
        if before:
            run_files.write(visit.folder / run_files.PREAMBLE, before)
        return PromptRequest(
            visit=visit,
            prompt=prompt,
            preamble=before,
            thread=found.thread,
            turns=turns,
            refuses=self._backends.refuses,
            verdict=instruction(visit, files=True) if wants_verdict(visit) else "",
        )


async def _ask(backend: AnyBackend, asking: PromptRequest) -> dict[str, Any]:
    require_approvals_kept(backend, asking.visit.stage, asking.visit.pipeline)
    if is_conversing(backend):
        reply = await _conversed(backend, asking)
    elif is_durable(backend):
        reply = await _answered(backend, asking)
    else:
        reply = _recorded(await call_once(backend, asking.visit, "answer", lambda: _answer(backend, asking)))
    asking.visit.context.apply_updates(reply.get("changes") or {})
    return reply


async def _tell_late_messages(visit: StageVisit) -> None:
    """Messages of people that came after its agent had ended: no other stage gets them."""
    ctx = visit.ctx
    for late in await ctx.steering.late(place_of(ctx)):
        ctx.emit(
            f"a message of {late.by} came too late for {visit.stage.id}: {one_line(late.text, 500)}", "log"
        )
        await ctx.steering.remove(late.id)


async def _ask_for_verdict(
    backend: AnyBackend, asking: PromptRequest, reply: Mapping[str, Any]
) -> dict[str, Any]:
    """The one further turn of a fail-closed gate, whose first answer was prose."""
    first, prompt = _turn(asking, reply), FOLLOW_UP
    if not is_conversing(backend):
        # It need not know its first answer, nor how to report a verdict.
        before = f"You were asked:\n\n{asking.whole}\n\nYou answered:\n\n{reply['text']}"
        prompt = f"{before}\n\n{prompt if is_durable(backend) else asking.with_verdict(prompt)}"
    again = msgspec.structs.replace(
        asking,
        prompt=prompt,
        preamble="",
        turns=(*asking.turns, first),
        equipped=False,
        earlier=Exchange(asking.prompt, str(reply["text"]), str(reply.get("session", ""))),
    )
    second = await _ask(backend, again)
    if "text" not in second or "failed" in second:
        return second
    messages = [message_to_plain(message) for message in (*first.messages, *_turn(again, second).messages)]
    return {**reply, **second, "messages": messages}


async def _answer(backend: AnyBackend, asking: PromptRequest) -> dict[str, Any]:
    """The recorded answer: after a crash it is found, and the model is not asked again."""
    visit = asking.visit
    _forget_status(visit)
    before = visit.context.changes()
    reply = answer_fields(await call_backend(backend, visit, asking.prompt, asking))
    changes = {k: v for k, v in visit.context.changes().items() if before.get(k, ...) != v}
    said = {"prompt": asking.exchange("").prompt, **_carried(asking), **_exchange(asking, reply)}
    return {**reply, **said, **_status(visit), "changes": changes}


def _recorded(found: Any) -> dict[str, Any]:
    """A person who says that the call happened may give its answer, as the backend would have."""
    fields = as_fields(found)
    is_ours = fields is not None and ("changes" in fields or "failed" in fields)
    return dict(fields) if fields is not None and is_ours else answer_fields(found)


async def _answered(backend: AnyBackend, asking: PromptRequest) -> dict[str, Any]:
    visit, asking = asking.visit, await _begun(asking)
    try:
        reply = answer_fields(await as_durable(backend).answer(visit, asking.with_verdict(asking.whole)))
    except Exception as error:
        raise_if_ours(error)
        return failure_fields(failure_of(error))
    return {
        **reply,
        **await visit.ctx.step("status", _kept, asking, reply, effect="read", key=_key(asking, "status")),
    }


async def _conversed(backend: AnyBackend, asking: PromptRequest) -> dict[str, Any]:
    visit, asking = asking.visit, await _begun(asking)
    try:
        reply = await as_conversing(backend).converse(asking)
    except Exception as error:
        raise_if_ours(error)
        return failure_fields(failure_of(error))
    if isinstance(reply, StageOutcome):
        return answer_fields(reply)
    found = reply_fields(reply)
    return {
        **found,
        **await visit.ctx.step("status", _kept, asking, found, effect="read", key=_key(asking, "status")),
    }


def _key(asking: PromptRequest, name: str) -> str:
    return name if asking.turn == 1 else f"{name}.{asking.turn}"


async def _begun(asking: PromptRequest) -> PromptRequest:
    """Record what is asked, before it is: entered again, the stage asks the same."""
    ctx = asking.visit.ctx
    found: Any = await ctx.step("begin", _begin, asking, effect="read", key=_key(asking, "begin"))
    if not isinstance(found, Mapping) or asking.earlier is not None:
        return asking
    said = cast("Mapping[str, str]", found)
    carried = {name: said.get(name, "") for name in ("preamble", "verdict")}
    return msgspec.structs.replace(asking, prompt=said["prompt"], **carried)


def _begin(asking: PromptRequest) -> dict[str, str]:
    _forget_status(asking.visit)
    # The prompt of the stage is that of its first turn.
    return {"request" if asking.earlier is not None else "prompt": asking.prompt, **_carried(asking)}


def _carried(asking: PromptRequest) -> dict[str, str]:
    return {name: text for name in ("preamble", "verdict") if (text := getattr(asking, name))}


def _kept(asking: PromptRequest, reply: Mapping[str, Any]) -> dict[str, Any]:
    """Record the answer: the run directory is written from that record."""
    return {**_exchange(asking, reply), **_status(asking.visit)}


def _exchange(asking: PromptRequest, reply: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": asking.exchange(str(reply["text"])).text} if "text" in reply else {}


def reply_fields(reply: BackendReply) -> dict[str, Any]:
    found: dict[str, Any] = {"text": reply.text, "model": reply.model, "cut": reply.cut}
    found["messages"] = [message_to_plain(message) for message in reply.messages]
    if reply.session:
        found["session"] = reply.session
    if reply.fault:
        found["fault"] = reply.fault
    if reply.status is not None:
        found["status"] = status_fields(outcome_of(reply.status))
    if reply.structured is not None:
        found["structured"] = dict(reply.structured)
    if reply.failed:
        found |= {"failed": reply.failed, "class": reply.kind}
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


def _outcome(asking: PromptRequest, reply: Mapping[str, Any]) -> StageOutcome:
    """The verdict of the stage, else success (AT-A15)."""
    visit = asking.visit
    noted: dict[str, Any] = {}
    if "text" in reply and "outcome" not in reply:
        text = str(reply["text"])
        run_files.write(visit.folder / "response.md", text)
        visit.outputs.response = text
        noted = {"last_stage": visit.stage.id, "last_response": text[:SHOWN]}
    found = judge(sources_of(reply, asked=wants_verdict(visit), request=_requested(asking)))
    if found is not None:
        updates = found.context_updates if "failed" in reply else {**noted, **found.context_updates}
        return replaced(found, context_updates=updates)
    if is_fail_closed(visit.stage, visit.pipeline):
        return _unproven(noted)
    if reply.get("cut") and wants_verdict(visit):
        fault = f"the answer was cut at its limit ({reply['cut']}) and has no verdict"
        failed = unreadable("the answer", fault).outcome
        return replaced(failed, context_updates={**noted, **failed.context_updates})
    auto = visit.stage.flag("auto_status")
    notes = AUTO_NOTE if auto else f"Stage completed: {visit.stage.id}"
    return StageOutcome(notes=notes, context_updates=noted)


def _requested(asking: PromptRequest) -> VerdictRequest:
    visit = asking.visit
    return VerdictRequest(
        id=visit.verdict_id,
        asked=as_conversation(asking),
        strict=is_fail_closed(visit.stage, visit.pipeline),
        former=visit.former_verdict_ids,
    )


def sources_of(
    reply: Mapping[str, Any], *, asked: bool, request: VerdictRequest | None = None
) -> list[VerdictSource]:
    """In the order in which they count. `asked`: whether the stage was told to report a verdict. `request`:
    what its text may repeat."""
    request = request or VerdictRequest()
    found: list[VerdictSource] = []
    if "outcome" in reply:
        found.append(VerdictSource("the backend", outcome_of(reply["outcome"])))
    if "failed" in reply:
        found.append(VerdictSource("the process", _failed(reply), failure=True))
    if "fault" in reply:
        found.append(unreadable(NAME, reply["fault"]))
    if "status" in reply:
        found.append(VerdictSource(NAME, outcome_of(reply["status"])))
    text = str(reply.get("text", ""))
    given = reply.get("structured")
    read = [
        ("the structured answer", structured_in(text, request) if given is None else checked(given)),
        ("the end of the answer", block_in(text, request)),
    ]
    if asked and all(each == (None, "") for _, each in read):
        read.append(("the answer", stray_in(text, request)))
    for name, (fields, fault) in read:
        if fault:
            found.append(unreadable(name, fault))
        elif fields is not None:
            found.append(VerdictSource(name, outcome_of(fields)))
    return found


def _failed(reply: Mapping[str, Any]) -> StageOutcome:
    kind = reply.get("class") or ""
    return StageOutcome(
        status=StageStatus.FAIL,
        failure_reason=reply["failed"],
        terminal=kind in FINAL,
        context_updates={CLASS_KEY: kind} if kind else {},
    )


def _lacks_proof(asking: PromptRequest, reply: Mapping[str, Any]) -> bool:
    if not is_fail_closed(asking.visit.stage, asking.visit.pipeline):
        return False
    return not sources_of(reply, asked=True, request=_requested(asking))


def prompt_of(visit: StageVisit) -> str:
    """The prompt, else the label, with every `$goal` and every reference replaced."""
    stage = visit.stage
    return with_references(visit, (stage.prompt or stage.label).replace("$goal", visit.pipeline.goal))


async def call_backend(
    backend: AnyBackend, visit: StageVisit, prompt: str, asking: PromptRequest | None = None
) -> Any:
    """A sync backend runs in a separate thread, so that it does not block the event loop."""
    run: Any = as_codergen(backend).run
    more = optional_arguments(backend, asking or PromptRequest(visit=visit, prompt=prompt))
    # In a task of its own: one that cancels itself has failed, and is not in doubt.
    return await call_alone(run, visit.stage, prompt, visit.context, **more)


def answer_fields(answer: Any) -> dict[str, Any]:
    if isinstance(answer, StageOutcome):
        return {"outcome": status_fields(answer)}
    if isinstance(answer, Mapping) and is_verdict(cast("Mapping[str, Any]", answer)):
        fields = dict(cast("Mapping[str, Any]", answer))
        return {"text": str(fields.get("notes") or ""), "structured": fields}
    if isinstance(answer, bool | BaseException):
        # As a text, False and an error would be a success.
        what = f"the backend returned {answer!r}, not a text, a StageOutcome or a mapping with `outcome`"
        return failure_fields(unreadable("", what).outcome)
    return {"text": "" if answer is None else str(cast("object", answer))}


def replaced(outcome: StageOutcome, **changes: Any) -> StageOutcome:
    return msgspec.structs.replace(outcome, **changes)


def _unproven(noted: dict[str, Any]) -> StageOutcome:
    reason = "no verdict was given: this goal gate is fail-closed, and a text is not accepted as proof"
    return replaced(unreadable("", reason).outcome, context_updates={**noted, CLASS_KEY: CLASS})


def _forget_status(visit: StageVisit) -> None:
    forget_status(visit.folder)


def _status(visit: StageVisit) -> dict[str, Any]:
    """The status that the stage wrote, to be recorded."""
    try:
        found = read_status(visit.folder)
    except VerdictError as fault:
        return {"fault": str(fault)}
    return {} if found is None else {"status": status_fields(found)}
