"""Attractor pipelines: the endpoints of section 9.5 of their specification. A pipeline is a run, and its
questions are holds: the routes of runs and holds work for it too."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.draw import draw
from holdfast.api.pipelines import chosen_backend, find_pipeline, pipeline_from_request, works_alone
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.files import TEXT, drawing, text_reply
from holdfast.api.schemas.input_guard import require_outside
from holdfast.api.schemas.pipelines import CancelPipeline, PipelineWire, SubmitPipeline, pipeline_wire
from holdfast.api.schemas.runs import etag_of
from holdfast.attractor.directory_sync import JournalFollower
from holdfast.attractor.picture import picture_of_run
from holdfast.attractor.prepare import input_of
from holdfast.attractor.progress import read_progress
from holdfast.attractor.recorded_stage import read_stage
from holdfast.attractor.stage_outputs import FILES
from holdfast.attractor.stored_source import pipeline_of
from holdfast.checkpoint.json_view import jsonable
from holdfast.drawing.svg import to_svg
from holdfast.errors import (
    ForbiddenError,
    InputError,
    KeyReusedError,
    NotFoundError,
    RunEndedError,
    RunNotFoundError,
    RunReadOnlyError,
)
from holdfast.frontends.dot.diagnostics import Diagnostic
from holdfast.runs.events import reader_of
from holdfast.runs.history.timeline import make_timeline
from holdfast.runs.idempotency import require_same
from holdfast.runs.run_view import shown_run
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.own_threads import in_thread

routes = Routes("pipelines")

_MISSING = (RunNotFoundError,)


@routes.post(
    "/pipelines",
    needs=Right.runs_write,
    status=201,
    more=(200,),
    makes="run",
    keyed=True,
    document=True,
    raises=(InputError, ForbiddenError, KeyReusedError),
)
async def submit_pipeline(call: ApiCall, body: SubmitPipeline) -> ApiReply[PipelineWire]:
    """Start a pipeline; it is durable when this returns, and any worker runs it.

    The files that it names are those of `files`; no other is read. Its prompts go to `backend`, else to that
    of the server, else to the one that all live workers have; if these differ, `backend` must be given.
    400 with every problem of the document and its position. 403 for commands, unless the operator allows them
    (`holdfast serve --allow-code`)."""
    require_outside(body.context)
    # In a thread: parsing a large document must not block the event loop.
    service, key = await call.runs(), call.key
    here, backend = await works_alone(service.store), await chosen_backend(body, service.store)
    ready = await in_thread(
        pipeline_from_request, body, call.settings, here=here, backend="" if body.simulate else backend
    )
    given = input_of(ready.pipeline, backend=backend, context=body.context, here=False)
    row, fresh = await service.create(
        ready.program,
        given,
        tenant=call.tenant,
        thread=body.thread,
        lane=body.lane,
        idempotency_key=key,
        started_by=call.actor.id,
        started_via=call.actor.people,
    )
    if not fresh and key is not None:
        await require_same(service, row, ready.program, given, key)
    headers = call.location(f"/v1/pipelines/{row.id}") if fresh else {}
    result = await _pipeline_reply(service, row, ready.diagnostics)
    return ApiReply(
        body=result, status=201 if fresh else 200, headers=headers, etag=await etag_of(service, row)
    )


@routes.get("/pipelines/{run}", needs=Right.runs_read, more=(304,), raises=_MISSING)
async def get_pipeline(call: ApiCall, run: str) -> ApiReply[PipelineWire]:
    """The progress of a pipeline."""
    service, row = await find_pipeline(call, run)
    return ApiReply(body=await _pipeline_reply(service, row), etag=await etag_of(service, row))


@routes.post(
    "/pipelines/{run}/cancel",
    needs=Right.runs_write,
    guarded=True,
    raises=(*_MISSING, RunEndedError, RunReadOnlyError),
)
async def cancel_pipeline(call: ApiCall, run: str, body: CancelPipeline) -> ApiReply[PipelineWire]:
    """Cancel a pipeline. Its worker stops it as soon as possible; its open questions are withdrawn."""
    service, row = await find_pipeline(call, run)
    call.require_match(await etag_of(service, row))
    row = await service.cancel(row.id, reason=body.reason, by=call.actor.id)
    return ApiReply(body=await _pipeline_reply(service, row), etag=await etag_of(service, row))


@routes.get("/pipelines/{run}/graph", needs=Right.runs_read, media=("image/svg+xml",), raises=_MISSING)
async def get_pipeline_graph(call: ApiCall, run: str) -> Response:
    """The pipeline as SVG: each stage with its state, and the taken edges."""
    service, row = await find_pipeline(call, run)
    line = await make_timeline(service, row, keep=0)
    picture = picture_of_run(pipeline_of(line.graph.spec), line.visits, interrupted=line.interrupted)
    return drawing(await draw(call, lambda: to_svg(picture)))


@routes.get("/pipelines/{run}/checkpoint", needs=Right.runs_read, raises=_MISSING)
async def get_pipeline_checkpoint(call: ApiCall, run: str) -> dict[str, Any]:
    """The content of the pipeline's `checkpoint.json`."""
    service, row = await find_pipeline(call, run)
    reader = await reader_of(service, row)
    follower = JournalFollower(service.store, service.runtime.blobs, reader.codec, reader.graph, row)
    return msgspec.json.decode((await follower.read_new()).checkpoint())


@routes.get("/pipelines/{run}/context", needs=Right.runs_read, raises=_MISSING)
async def get_pipeline_context(call: ApiCall, run: str) -> dict[str, Any]:
    """The context values that its stages share, by key."""
    service, row = await find_pipeline(call, run)
    return jsonable((await service.latest(row.id)).shown().state)


class ShowStage(msgspec.Struct, kw_only=True):
    """`visit`: which execution of the stage; 0: the last one."""

    visit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0


_STAGE_RAISES = (*_MISSING, NotFoundError, InputError)


@routes.get(
    "/pipelines/{run}/stages/{stage}/prompt", needs=Right.runs_read, media=(TEXT,), raises=_STAGE_RAISES
)
async def get_stage_prompt(call: ApiCall, run: str, stage: str, query: ShowStage) -> Response:
    """What the model of a stage was given: the preamble, the prompt, and how to report the verdict."""
    service, row = await find_pipeline(call, run)
    return text_reply((await read_stage(service, row, stage, query.visit)).require_prompt())


@routes.get(
    "/pipelines/{run}/stages/{stage}/outputs/{output}",
    needs=Right.runs_read,
    media=(TEXT,),
    raises=_STAGE_RAISES,
)
async def get_stage_output(call: ApiCall, run: str, stage: str, output: str, query: ShowStage) -> Response:
    """What a stage left, whole: `response`, `stdout`, `stderr`, `verdict` or `diff`."""
    service, row = await find_pipeline(call, run)
    if output not in FILES:
        raise InputError(f"unknown output {output!r}.", hint=f"It is one of {', '.join(FILES)}.")
    return text_reply((await read_stage(service, row, stage, query.visit)).require_output(output))


async def _pipeline_reply(
    service: RunService, row: RunRow, found: tuple[Diagnostic, ...] = ()
) -> PipelineWire:
    shown = await shown_run(service.store, row)
    return pipeline_wire(shown, await read_progress(service, row.id), await service.questions(row.id), found)
