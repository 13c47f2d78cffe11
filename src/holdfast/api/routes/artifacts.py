"""Artifacts of runs, and whole runs, as files."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page
from holdfast.api.pipelines import require_no_document, require_submitted
from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.files import BYTES, as_file, attachment
from holdfast.api.schemas.history import ArtifactWire
from holdfast.api.schemas.runs import RunDetail, run_detail
from holdfast.errors import (
    BlobMissingError,
    CheckpointCorruptError,
    ConflictError,
    EffectsRepeatedError,
    FlowNotFoundError,
    ForbiddenError,
    InputError,
    KeyMissingError,
    NotFoundError,
    RunNotFoundError,
    SchemaTooNewError,
)
from holdfast.runs.transfer.import_run import read_archive

routes = Routes("runs")


class ImportRun(msgspec.Struct, kw_only=True):
    as_new_run: bool = False
    repeat_effects: bool = False


@routes.get("/runs/{run}/artifacts", needs=Right.runs_read, raises=(RunNotFoundError,))
async def list_artifacts(call: ApiCall, run: str) -> Page[ArtifactWire]:
    """The run's artifacts so far, by name."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    picture = (await service.checkpoint(row.id, row.head)).shown()
    items: list[ArtifactWire] = []
    for name, value in sorted(picture.artifacts.items()):
        media, data = as_file(value)
        ref = picture.artifact_refs.get(name)
        digest = None if ref is None else ref.digest
        items.append(ArtifactWire(name=name, media_type=media, size=len(data), digest=digest))
    return Page(items=items)


@routes.get(
    "/runs/{run}/artifacts/{name:path}",
    needs=Right.runs_read,
    media=("application/json", "text/plain; charset=utf-8", BYTES),
    raises=(RunNotFoundError, NotFoundError),
)
async def get_artifact(call: ApiCall, run: str, name: str) -> Response:
    """An artifact as a file: bytes unchanged, text as text, everything else as JSON."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    picture = (await service.checkpoint(row.id, row.head)).shown()
    if name not in picture.artifacts:
        raise NotFoundError(
            f"run {row.id} has no artifact {name!r}.",
            hint=f"It has: {', '.join(sorted(picture.artifacts)[:20]) or 'none'}.",
        )
    media, data = as_file(picture.artifacts[name])
    return attachment(data, media, name)


@routes.get(
    "/runs/{run}/export",
    needs=Right.admin,
    media=(BYTES,),
    raises=(RunNotFoundError, CheckpointCorruptError, FlowNotFoundError),
)
async def export_run(call: ApiCall, run: str) -> Response:
    """The run with its whole history as a file, for another store; encrypted if the store is."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    return attachment(await service.export_run(row.id), BYTES, f"run-{row.id}.holdfast")


@routes.post(
    "/runs/import",
    needs=Right.admin,
    status=201,
    media=(BYTES,),
    raises=(InputError, ConflictError, EffectsRepeatedError, FlowNotFoundError, ForbiddenError),
)
async def import_run(call: ApiCall, query: ImportRun, body: bytes) -> ApiReply[RunDetail]:
    """Import an exported run as read-only history, or as a new run that continues from its end.

    Importing the same file again returns the same run. A new run of a flow that may ask people starts again
    with the run's input, because a file proves no decision: its `forked_from` says so. Where the file shows
    work with outside effects, that is refused with 409 and nothing is imported, unless `repeat_effects` is
    set."""
    service = await call.runs()
    try:
        archive = read_archive(body)
        require_no_document(archive.history.run.version, call.settings)
        for graph in (archive.graph, *archive.older):
            require_submitted(graph)
        row = await service.import_run(
            body,
            as_new_run=query.as_new_run,
            tenant=call.tenant,
            actor=call.actor,
            repeat_effects=query.repeat_effects,
        )
    except (CheckpointCorruptError, SchemaTooNewError, KeyMissingError, BlobMissingError) as error:
        # Errors of a store elsewhere; here the file is the caller's.
        raise HttpError(422, error.message, code=error.code, hint=error.hint) from error
    detail = await run_detail(service, row)
    return ApiReply(body=detail, status=201, headers=call.location(f"/v1/runs/{row.id}"))
