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
from holdfast.attractor.backends.agents.backend import PREFIX as AGENT
from holdfast.attractor.backends.cli import PREFIX as COMMAND
from holdfast.attractor.backends.model import NAME as MODEL
from holdfast.attractor.machine_requirements import required_access_of
from holdfast.attractor.prepare import PreparedPipeline, input_of
from holdfast.attractor.program import PipelineSetup, program_for
from holdfast.attractor.stored_source import pipeline_of
from holdfast.attractor.worker_requirements import default_of, prompting_stages
from holdfast.attractor.worktree_requirements import repository_problems
from holdfast.errors import (
    ForbiddenError,
    InputError,
    PipelineInvalidError,
    PipelineSyntaxError,
    RunNotFoundError,
)
from holdfast.frontends.dot.attributes import AGENTS
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.files import RequestFiles
from holdfast.frontends.dot.lower import DIALECT
from holdfast.frontends.dot.model_choice import model_choice
from holdfast.frontends.dot.transforms import prepare
from holdfast.frontends.dot.validate import require_valid
from holdfast.model.fingerprint import decode_graph, dialect_of
from holdfast.model.graph import GraphSpec
from holdfast.model.program import Program
from holdfast.runs.events import reader_of
from holdfast.runs.service import RunService
from holdfast.runs.unserved import live_workers
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
    alive = await live_workers(store)
    own = (os.uname().nodename, os.getpid())
    return bool(alive) and all((row.host, row.pid) == own for row in alive)


def pipeline_from_request(
    body: SubmitPipeline, settings: ApiSettings, *, here: bool = False, backend: str = ""
) -> PreparedPipeline:
    """`here`: its runs can run in this process only. `backend`: as `chosen_backend` says. Raises HttpError:
    400 with every problem and its position, 403 for content that is not allowed."""
    setup = PipelineSetup(simulate=body.simulate, asked=backend)
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
    program = program_for(pipeline, setup)
    _require_choice(pipeline_of(program.graph.spec), setup)
    return PreparedPipeline(pipeline, program, prepared.diagnostics)


async def chosen_backend(body: SubmitPipeline, store: Store) -> str:
    """The one of the request, else of this process, else the one that every live worker uses by default.
    Empty if it is not known: only a pipeline whose stages need none can be started then."""
    if body.backend and body.simulate:
        raise InputError("`simulate` and `backend` are both given.", hint="Send one of them.")
    _require_name(body.backend)
    own = body.backend or PipelineSetup(simulate=body.simulate).asks_for
    if own:
        return own
    names = {default_of(row.offers) for row in await live_workers(store)} - {""}
    return names.pop() if len(names) == 1 else ""


def _require_name(backend: str) -> None:
    """Raises HttpError for what no worker can have: its run would wait for ever."""
    known = ", ".join(f"{AGENT}{name}" for name in AGENTS)
    if backend.startswith(AGENT) and backend.removeprefix(AGENT) not in AGENTS:
        _refuse(400, f"there is no backend {backend!r}.", "backend_unknown", [], f"Agents: {known}.")
    if backend.startswith(COMMAND) or ".py:" in backend:
        message = f"{backend!r} is a command or a file, and not the name of a backend."
        hint = (
            f"Send model, {known}, or a name that a worker was given: `holdfast worker --backend NAME=SPEC`."
        )
        _refuse(400, message, "backend_unknown", [], hint)


def _require_choice(pipeline: Pipeline, setup: PipelineSetup) -> None:
    """Raises HttpError: each stage is answered by what was known when its run was created, and not by the
    backend or model of whichever worker takes it."""
    if setup.simulate:
        return
    stages = [each for each in prompting_stages(pipeline, frozenset()) if not each.text("agent")]
    if stages and not setup.asks_for:
        message = f"stage {stages[0].id!r} has a prompt, and no backend is named."
        hint = (
            "Send `backend`, for example model or agent:claude: workers have different ones, or none is live."
        )
        _refuse(400, message, "backend_missing", [], hint)
    lacks = [each.id for each in stages if setup.asks_for == MODEL and not model_choice(each, pipeline).model]
    if lacks:
        message = f"stage {lacks[0]!r} names no model, and this server has no default."
        hint = (
            "Set llm_model of the stage or of the graph, or ask the operator to set a provider's key there."
        )
        _refuse(400, message, "model_missing", [], hint)
    for child in pipeline.children.values():
        _require_choice(child, setup)


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
        message = f"this server does not run code from documents: {shown}."
        _refuse(403, message, "code_not_allowed", [brought_wire(each) for each in found], _HINT)


def _refuse(status: int, message: str, code: str, errors: list[DiagnosticWire], hint: str | None) -> NoReturn:
    raise HttpError(status, message, code=code, hint=hint, errors=errors)
