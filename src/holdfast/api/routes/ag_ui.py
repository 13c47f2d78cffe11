"""A flow as an agent of AG-UI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from starlette.responses import Response

from holdfast.api.ag_ui.run_input import ResumeEntry, RunAgentInput, input_for, require_messages
from holdfast.api.ag_ui.stream import AgUiStream
from holdfast.api.auth.rights import Right
from holdfast.api.live.hub import hub_of
from holdfast.api.live.sse import MEDIA, EventStream, resume_position
from holdfast.api.pipelines import whole_input
from holdfast.api.problems import no_right
from holdfast.api.program_lookup import find_program
from holdfast.api.routes.event_streams import stream_timeouts
from holdfast.api.routing import ApiCall, Routes
from holdfast.errors import (
    AnswerInvalidError,
    CodeRequiredError,
    ConflictError,
    FlowNotFoundError,
    ForbiddenError,
    HoldDecidedError,
    HoldNotFoundError,
    InputError,
    KeyReusedError,
    VersionMismatchError,
)
from holdfast.runs.answer_text import require_answerable
from holdfast.runs.idempotency import require_same, require_same_thread
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.status import HoldStatus

routes = Routes("streams")


@routes.post(
    "/flows/{flow:path}/ag-ui",
    needs=Right.runs_write,
    media=(MEDIA,),
    raises=(
        FlowNotFoundError,
        ForbiddenError,
        InputError,
        KeyReusedError,
        VersionMismatchError,
        CodeRequiredError,
        HoldNotFoundError,
        AnswerInvalidError,
        ConflictError,
    ),
)
async def stream_ag_ui(call: ApiCall, flow: str, body: RunAgentInput) -> Response:
    """Start a run of a flow and follow it, with the messages of AG-UI 1.0: `RunAgentInput`, and its events as
    server-sent events.

    `threadId` is the thread of the run, `runId` its idempotency key: the same request again follows the same
    run, from its beginning or after `Last-Event-ID`. A question that the caller may see ends the stream with
    the outcome `interrupt`; entries of `resume` answer it as the caller, and the stream continues with that
    run. 422 for a request that does not fit, 409 for a question that is decided already; once the stream has
    begun, an error is the event `RUN_ERROR`."""
    given = body
    require_messages(given)
    service = await call.runs()
    hub_of(call.hf).require_room(call.settings.most_streams)
    seen = resume_position(call.request, 0)
    if given.resume:
        row, after, answers = await _resumed(call, service, flow, given, given.resume)
    else:
        row, after, answers = await _started(call, service, flow, given), 0, frozenset[str]()
    stream = AgUiStream(call, service, row, given, after=after, seen=seen, answers=answers)
    return EventStream(stream.events(stream_timeouts(call)))


async def _started(call: ApiCall, service: RunService, flow: str, given: RunAgentInput) -> RunRow:
    program = await find_program(call, flow)
    whole = whole_input(program, input_for(program, given))
    row, fresh = await service.create(
        program,
        whole,
        tenant=call.tenant,
        thread=given.thread_id,
        idempotency_key=given.run_id,
        started_by=call.actor.id,
        started_via=call.actor.people,
    )
    if not fresh:
        require_same_thread(row, given.thread_id, given.run_id)
        await require_same(service, row, program, whole, given.run_id)
    return row


# ---------------------------------------------------------------------- answers


async def _resumed(
    call: ApiCall, service: RunService, flow: str, given: RunAgentInput, entries: list[ResumeEntry]
) -> tuple[RunRow, int, frozenset[str]]:
    """The run whose questions were answered, the number of the event after which the stream goes on, and the
    holds that are decided by now."""
    if not call.who.may(Right.holds_write):
        raise no_right(Right.holds_write)
    _require_each_once(entries)
    people = await call.holds()
    holds = [await people.get(call.actor, entry.interrupt_id) for entry in entries]
    row = await _run_of(call, service, flow, given, holds)
    decided = await _answered(call, service, given.run_id, row, entries)
    last = max(holds, key=lambda hold: hold.seq)
    (asked,) = await service.store.read(row.id, first=last.seq, last=last.seq) or [None]
    after = 0 if asked is None else asked.event_from + asked.events - 1
    return row, after, decided


async def _answered(
    call: ApiCall, service: RunService, key: str, row: RunRow, entries: list[ResumeEntry]
) -> frozenset[str]:
    """The holds that are decided by now: others need more votes. Every answer is checked before the first is
    taken, so that one that is refused leaves none of the others behind."""
    contents = {entry.interrupt_id: _content(entry) for entry in entries if entry.status == "resolved"}
    if len(contents) > 1:
        for hold, content in contents.items():
            named = {"hold": hold, "key": f"{key}/{hold}"}
            await require_answerable(service, row.id, content, actor=call.actor, **named)
            await _require_not_decided(call, service, key, await service.store.hold(HoldId(hold)))
    answered: list[HoldRow] = []
    for hold, content in contents.items():
        said = await service.say(
            row.id, content, hold=hold, by=call.actor.id, actor=call.actor, key=f"{key}/{hold}"
        )
        # Nothing was written if it had been decided: also two tabs in the same moment are told apart.
        await _require_not_decided(call, service, key, said)
        answered.append(said)
    return frozenset(hold.id for hold in answered if hold.status is not HoldStatus.pending)


async def _require_not_decided(call: ApiCall, service: RunService, key: str, hold: HoldRow | None) -> None:
    """Raises HoldDecidedError for a hold that another request has decided, also one of the same person with
    the same answer: its stream is not that of this `runId`."""
    if hold is None or hold.status is HoldStatus.pending:
        return
    if await service.store.hold_key(hold.id, call.actor.id, f"{key}/{hold.id}") is None:
        raise HoldDecidedError(
            f"interrupt {hold.id} is decided already, and not under this runId.",
            hint="Send the request again with the runId that answered it, or follow the run.",
            hold=hold.id,
        )


def _require_each_once(entries: list[ResumeEntry]) -> None:
    named: set[str] = set()
    for entry in entries:
        if entry.interrupt_id in named:
            raise InputError(
                f"`resume` names the interrupt {entry.interrupt_id!r} twice.",
                hint="Send one entry for each interrupt.",
            )
        named.add(entry.interrupt_id)


async def _run_of(
    call: ApiCall, service: RunService, flow: str, given: RunAgentInput, holds: list[HoldRow]
) -> RunRow:
    runs = {hold.run for hold in holds}
    row = await service.get(holds[0].run, tenant=call.tenant)
    if len(runs) > 1 or row.thread != given.thread_id or row.flow != flow.partition("@")[0]:
        raise InputError(
            "`resume` names interrupts of another run, thread or flow.",
            hint="Send the entries of one interrupted run, to the flow and with the threadId of that run.",
        )
    return row


def _content(entry: ResumeEntry) -> str | Mapping[str, Any]:
    """A text is matched with the options, as a person writes it."""
    payload = entry.payload
    if isinstance(payload, (str, dict)):
        return cast("str | dict[str, Any]", payload)
    if entry.status == "cancelled":
        return ""
    raise AnswerInvalidError(
        f"the payload of {entry.interrupt_id!r} is neither a text nor an object.",
        hint='Send an option, such as "approve", or {"decision": "approve", "comment": "..."}.',
    )
