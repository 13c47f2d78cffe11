"""Runs: create, show, cancel, steer, resume, fork, rewind, and answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page, cursor_of, place_of
from holdfast.api.pipelines import whole_input
from holdfast.api.problems import no_right
from holdfast.api.program_lookup import find_program
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.runs import (
    BranchRun,
    CancelRun,
    CreateRun,
    GiveInput,
    InputTaken,
    ListPending,
    PendingWire,
    PreviewChange,
    ResultQuery,
    ResumeQuery,
    ResumeRun,
    RunDetail,
    RunResult,
    SteerRun,
    SteerTaken,
    etag_of,
    input_taken,
    run_detail,
)
from holdfast.app.flow import wait_until_idle
from holdfast.checkpoint.json_view import jsonable
from holdfast.errors import (
    AnswerInvalidError,
    CheckpointNotFoundError,
    CodeRequiredError,
    ConflictError,
    EffectsRepeatedError,
    FlowNotFoundError,
    ForbiddenError,
    HistoryLostError,
    HoldNotFoundError,
    InputError,
    KeyReusedError,
    RunBusyError,
    RunEndedError,
    RunNotFoundError,
    RunReadOnlyError,
    RunStatusError,
    StateError,
    VersionMismatchError,
)
from holdfast.runs.fork.fork import fork_once
from holdfast.runs.idempotency import require_same, require_same_thread
from holdfast.runs.pending_holds import pending_page
from holdfast.runs.preview.run_change import RunChangePreview, preview_change
from holdfast.runs.resume import resume
from holdfast.runs.run_view import shown_run
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow

routes = Routes("runs")

_MISSING = (RunNotFoundError,)
_BRANCHING = (
    RunNotFoundError, CheckpointNotFoundError, StateError, KeyReusedError, RunReadOnlyError,
    VersionMismatchError, ForbiddenError, EffectsRepeatedError,
)  # fmt: skip


@routes.post(
    "/runs/{run}/preview",
    needs=Right.runs_read,
    raises=(
        *_MISSING, CheckpointNotFoundError, StateError, VersionMismatchError, FlowNotFoundError, InputError,
        ConflictError, ForbiddenError,
    ),
)  # fmt: skip
async def preview_run_change(call: ApiCall, run: str, body: PreviewChange) -> RunChangePreview:
    """What a resume, retry, fork, rewind or cancel would do: which nodes run again, which effects may
    happen once more, which questions are withdrawn or asked again. With a patch also what the new run would
    do: it is continued in memory. Nothing is changed, and nothing is done outside."""
    # Who may not fork gets no code run with a state of their own.
    if body.patch is not None and not call.who.may(Right.runs_write):
        raise no_right(Right.runs_write)
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    return await preview_change(service, row, body.action, at=body.seq, patch=body.patch, actor=call.actor)


@routes.post(
    "/runs",
    needs=Right.runs_write,
    status=201,
    more=(200,),
    makes="run",
    keyed=True,
    raises=(
        FlowNotFoundError,
        ForbiddenError,
        InputError,
        KeyReusedError,
        VersionMismatchError,
        CodeRequiredError,
    ),
)
async def create_run(call: ApiCall, body: CreateRun) -> ApiReply[RunDetail]:
    """Start a run. It is durable when this returns; a worker that serves its flow runs it.

    201 with its `Location`; 200 and the same run if the key was used before, 422 if the key was used with
    another input."""
    return await start_from_request(call, body)


async def start_from_request(
    call: ApiCall, body: CreateRun, *, thread: str | None = None
) -> ApiReply[RunDetail]:
    flow = body.flow or body.workflow_uri
    if flow is None or (body.flow is not None and body.workflow_uri not in (None, body.flow)):
        raise InputError("a new run needs one flow.", hint='Send {"flow": "refund", "input": {}}.')
    if call.key is not None and body.idempotency_key not in (None, call.key):
        raise InputError("the key in the body is not the one in the header.", hint="Send one of them.")
    service, key = await call.runs(), call.key or body.idempotency_key
    program = await find_program(call, flow, body.version)
    given = whole_input(program, body.input)
    row, fresh = await service.create(
        program,
        given,
        tenant=call.tenant,
        thread=thread or body.thread,
        lane=body.lane,
        priority=body.priority,
        instance_key=body.instance_key,
        deployment=body.deployment,
        mode=body.mode,
        breaks=body.breaks or None,
        idempotency_key=key,
        started_by=call.actor.id,
        started_via=call.actor.people,
    )
    if not fresh and key is not None:
        require_same_thread(row, thread or body.thread, key)
        await require_same(service, row, program, given, key)
    if body.wait:
        await wait_until_idle(service, row.id, body.wait)
        row = await service.get(row.id, tenant=call.tenant)
    return await run_reply(call, service, row, new=fresh)


async def run_reply(call: ApiCall, service: RunService, row: RunRow, *, new: bool) -> ApiReply[RunDetail]:
    """A run that a request created (201, with its Location) or found (200)."""
    headers = call.location(f"/v1/runs/{row.id}") if new else {}
    detail = await run_detail(service, row)
    return ApiReply(
        body=detail, status=201 if new else 200, headers=headers, etag=await etag_of(service, row)
    )


@routes.get("/runs/pending", needs=Right.runs_read, raises=(InputError,))
async def list_pending_runs(call: ApiCall, query: ListPending) -> Page[PendingWire]:
    """Runs that wait for input, with their questions: the newest question first.

    With `mine` a page may be short and still have a `next`: only a limited number of questions is scanned."""
    found, following = await pending_page(
        await call.runs(),
        tenant=call.tenant,
        thread=query.thread,
        starter=call.actor.id if query.mine else None,
        after=place_of(call.hf.cell, query.cursor, tuple[int, int]),
        limit=query.limit,
    )
    items = [
        PendingWire(
            run=each.run,
            flow=each.flow,
            thread=each.thread,
            hold_id=each.checkpoint,
            node=each.node,
            prompt=each.prompt,
            assignee=each.assignee,
            created_at=moment(each.created_at) or "",
        )
        for each in found
    ]
    return Page(items=items, next=None if following is None else cursor_of(call.hf.cell, *following))


@routes.get("/runs/{run}", needs=Right.runs_read, more=(304,), raises=_MISSING)
async def get_run(call: ApiCall, run: str) -> ApiReply[RunDetail]:
    """One run."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    return ApiReply(body=await run_detail(service, row), etag=await etag_of(service, row))


@routes.delete("/runs/{run}", needs=Right.admin, guarded=True, raises=(*_MISSING, RunBusyError))
async def delete_run(call: ApiCall, run: str) -> None:
    """Delete an ended run for good, with its history, holds and artifacts. The audit keeps its entries.

    409 for a run that has not ended: cancel it first. Forks of it stay."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    call.require_match(await etag_of(service, row))
    await service.delete(row.id, by=call.actor.id)


@routes.get("/runs/{run}/result", needs=Right.runs_read, raises=_MISSING)
async def get_run_result(call: ApiCall, run: str, query: ResultQuery) -> RunResult:
    """The result of a run. `wait`: at most this many seconds, until it has ended or waits for input."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    await wait_until_idle(service, row.id, query.wait)
    row = await service.get(row.id, tenant=call.tenant)
    picture = (await service.checkpoint(row.id, row.head)).shown()
    shown = await shown_run(service.store, row)
    return RunResult(
        id=row.id,
        status=shown.status,
        state=jsonable(picture.state),
        artifacts=jsonable(picture.artifacts),
        error=row.error,
        open_holds=[each.hold for each in picture.pending_input],
        wakes_at=moment(shown.wakes_at),
    )


@routes.post(
    "/runs/{run}/cancel",
    needs=Right.runs_write,
    guarded=True,
    raises=(*_MISSING, RunEndedError, RunReadOnlyError),
)
async def cancel_run(call: ApiCall, run: str, body: CancelRun) -> ApiReply[RunDetail]:
    """Cancel a run. Its worker stops it as soon as possible; its open holds are withdrawn."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    call.require_match(await etag_of(service, row))
    row = await service.cancel(row.id, reason=body.reason, by=call.actor.id)
    return await run_reply(call, service, row, new=False)


@routes.post(
    "/runs/{run}/steer",
    needs=Right.runs_write,
    raises=(*_MISSING, RunEndedError, RunReadOnlyError, RunStatusError),
)
async def steer_run(call: ApiCall, run: str, body: SteerRun) -> SteerTaken:
    """Send a message to the agent that is running in the run. A model gets it once, after the tool calls that
    it makes now; a command-line agent in a further turn. 409 if no stage with an agent is active."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    made = await service.steer(row.id, body.text, by=call.actor.id, stage=body.stage)
    return SteerTaken(id=made.id, run=row.id, text=made.text)


@routes.post(
    "/runs/{run}/resume",
    needs=Right.runs_write,
    guarded=True,
    more=(201,),
    keyed=True,
    raises=(*_BRANCHING, HistoryLostError),
)
async def resume_run(call: ApiCall, run: str, query: ResumeQuery, body: ResumeRun) -> ApiReply[RunDetail]:
    """Resume a run from its latest checkpoint or another.

    The latest checkpoint or the question that was just answered, and no `input_data`: the same run is
    resumed, 200, and the question is not asked again. An older checkpoint, or an input: a fork of it, 201
    with its `Location` and `forked_from`; the run itself is not changed. A finished run: 200, and nothing is
    executed."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    call.require_match(await etag_of(service, row))
    at, mode = body.checkpoint_id or query.checkpoint_id, query.mode or body.mode
    row, new = await resume(
        service,
        row,
        checkpoint=at,
        given=body.input_data,
        mode=mode,
        accept_loss=body.accept_loss,
        key=call.key,
        actor=call.actor,
        repeat_effects=body.repeat_effects,
    )
    return await run_reply(call, service, row, new=new)


@routes.post(
    "/runs/{run}/fork",
    needs=Right.runs_write,
    guarded=True,
    status=201,
    more=(200,),
    keyed=True,
    raises=_BRANCHING,
)
async def fork_run(call: ApiCall, run: str, body: BranchRun) -> ApiReply[RunDetail]:
    """Create a new run that starts at a checkpoint of this one. This one is not changed."""
    return await _branch(call, run, body, supersede=False)


@routes.post(
    "/runs/{run}/rewind",
    needs=Right.runs_write,
    guarded=True,
    status=201,
    more=(200,),
    keyed=True,
    raises=_BRANCHING,
)
async def rewind_run(call: ApiCall, run: str, body: BranchRun) -> ApiReply[RunDetail]:
    """Replace this run by a fork: this one is cancelled, and both link to each other."""
    return await _branch(call, run, body, supersede=True)


async def _branch(call: ApiCall, run: str, body: BranchRun, *, supersede: bool) -> ApiReply[RunDetail]:
    if body.checkpoint_id is not None and body.seq is not None:
        raise InputError("name the checkpoint by its id or by its record, not by both.")
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    call.require_match(await etag_of(service, row))
    at = body.checkpoint_id if body.checkpoint_id is not None else body.seq
    seq = None if at is None else (await service.standing(row.id, at))[1]
    made, new = await fork_once(
        service,
        row,
        seq,
        patch=body.patch,
        given=body.input_data,
        supersede=supersede,
        key=call.key,
        actor=call.actor,
        repeat_effects=body.repeat_effects,
    )
    return await run_reply(call, service, made, new=new)


@routes.post(
    "/runs/{run}/input",
    needs=Right.holds_write,
    keyed=True,
    raises=(*_MISSING, HoldNotFoundError, AnswerInvalidError, ConflictError, ForbiddenError),
)
async def give_input(call: ApiCall, run: str, body: GiveInput) -> InputTaken:
    """Answer a question of a run; the body is read as JSON whatever its content type.

    A text is matched with the options' ids, then with their labels, ignoring case: 422 with the ids if it
    matches none. 409 if several questions are open and none is named, or if it is already decided."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    return await send_input(call, service, row, body.content, body.request_id or body.checkpoint_id)


async def send_input(
    call: ApiCall, service: RunService, row: RunRow, content: str | Mapping[str, Any], hold: str | None
) -> InputTaken:
    """Once per `Idempotency-Key`. Raises HttpError 403 for a credential that may start runs only."""
    if not call.who.may(Right.holds_write):
        raise no_right(Right.holds_write)
    actor = call.actor
    return input_taken(await service.say(row.id, content, hold=hold, by=actor.id, actor=actor, key=call.key))
