"""Runs of pipelines for requests, and what a submitted pipeline may contain: commands and files only if that
is allowed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall
from holdfast.api.schemas.pipelines import DiagnosticWire, SubmitPipeline, brought_wire, diagnostic_wire
from holdfast.api.settings import ApiSettings
from holdfast.attractor.prepare import PreparedPipeline, input_of
from holdfast.attractor.program import PipelineSetup, program_for
from holdfast.attractor.required_access import required_access_of
from holdfast.attractor.stored_source import pipeline_of
from holdfast.attractor.workspace_needs import repository_problems
from holdfast.errors import ForbiddenError, PipelineInvalidError, PipelineSyntaxError, RunNotFoundError
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.files import RequestFiles
from holdfast.frontends.dot.lint import require_valid
from holdfast.frontends.dot.lower import DIALECT
from holdfast.frontends.dot.transforms import prepare
from holdfast.model.fingerprint import decode_graph, dialect_of
from holdfast.model.graph import GraphSpec
from holdfast.model.program import Program
from holdfast.runs.events import reader_of
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow

if TYPE_CHECKING:
    from holdfast.store.protocols import Store


async def find_pipeline(call: ApiCall, run: str) -> tuple[RunService, RunRow]:
    """Raises RunNotFoundError, also for a run that is not a pipeline's."""
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    if dialect_of(row.version) != DIALECT:
        raise RunNotFoundError(
            f"run {row.id} is a run of flow {row.flow!r}, not of a pipeline.",
            hint=f"GET /v1/runs/{row.id} shows it.",
            run=row.id,
        )
    return service, row


async def document_of(service: RunService, row: RunRow) -> Pipeline:
    return pipeline_of((await reader_of(service, row)).graph.spec)


_HINT = "Remove it, or ask the operator to start the server with `holdfast serve --allow-code`."
_FIX_HINT = "`errors` lists every problem, with its position and fix."


async def works_alone(store: Store) -> bool:
    """Whether every live worker is in this process: then it is known what its machine has. Another worker may
    have a repository that this one lacks, and its run waits for it."""
    now = store.now()
    alive = [row for row in await store.workers() if row.until > now and not row.draining]
    own = (os.uname().nodename, os.getpid())
    return bool(alive) and all((row.host, row.pid) == own for row in alive)


def pipeline_from_request(
    body: SubmitPipeline, settings: ApiSettings, *, here: bool = False
) -> PreparedPipeline:
    """`here`: its runs can run in this process only. Raises HttpError: 400 with every problem and its
    position, 403 for content that is not allowed."""
    setup = PipelineSetup(simulate=body.simulate)
    files = RequestFiles(body.files)
    try:
        prepared = prepare(
            body.dot, strict=body.strict, files=files, known_types=setup.whole_registry().types
        )
        if not settings.allow_code:
            _require_no_code(prepared.pipeline)
        problems = repository_problems(prepared.pipeline) if here else []
        require_valid(prepared.pipeline.name, [*prepared.diagnostics, *problems])
        pipeline = prepared.pipeline
        # Also with --allow-code: each worker decides for itself.
        pipeline = msgspec.structs.replace(pipeline, submitted=True)
    except (PipelineSyntaxError, PipelineInvalidError) as error:
        found: Any = error.facts.get("diagnostics") or ()
        listed = [diagnostic_wire(each) for each in found]
        _refuse(400, error.message, error.code, listed, error.hint or _FIX_HINT)
    return PreparedPipeline(pipeline, program_for(pipeline, setup), prepared.diagnostics)


def whole_input(program: Program, given: dict[str, Any]) -> dict[str, Any]:
    """The input of a run of it; for a pipeline with the attributes of its graph."""
    if program.graph.dialect != DIALECT:
        return given
    return input_of(pipeline_of(program.graph.spec), context=given, here=False)


def require_no_document(version: str, settings: ApiSettings) -> None:
    """Raises ForbiddenError for a pipeline inside a graph or a history: any worker would run it."""
    if dialect_of(version) == DIALECT and not settings.allow_code:
        raise ForbiddenError(
            "this is a pipeline: any worker would run the commands in it.",
            hint="POST its source to /v1/pipelines; or ask the operator to start the server with "
            "`holdfast serve --allow-code`.",
        )


def marked_submitted(spec: GraphSpec) -> GraphSpec:
    """A pipeline in a graph with the mark that it was sent by a caller; other graphs as they are."""
    if not spec.document or spec.document.get("dialect") != DIALECT:
        return spec
    return msgspec.structs.replace(spec, document={**spec.document, "submitted": True})


def require_submitted(graph: bytes) -> None:
    """Raises ForbiddenError for a pipeline without that mark: workers would run its commands as those of the
    operator, and the mark cannot be added to a history."""
    spec = decode_graph(graph)
    if spec.document and spec.document.get("dialect") == DIALECT and not pipeline_of(spec).submitted:
        raise ForbiddenError(
            "this pipeline was not submitted to a server, so its run cannot be imported over HTTP.",
            hint="Import it on the machine of the store: `holdfast import FILE`.",
        )


def _require_no_code(pipeline: Pipeline) -> None:
    """Nor in what it includes, nor in its child pipelines."""
    found = required_access_of(pipeline)
    if found:
        shown = "; ".join(map(str, found[:5])) + (f"; {len(found) - 5} more" if len(found) > 5 else "")
        message = f"This server does not run code from documents: {shown}."
        _refuse(403, message, "code_not_allowed", [brought_wire(each) for each in found], _HINT)


def _refuse(status: int, message: str, code: str, errors: list[DiagnosticWire], hint: str | None) -> NoReturn:
    raise HttpError(status, message, code=code, hint=hint, errors=errors)
