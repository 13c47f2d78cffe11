"""Running pipelines from Python: `await run_pipeline(source)`, or a `Runner` for more than one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from holdfast.app.flow import advance, follow, result_of, run_blocking
from holdfast.app.holdfast import Holdfast, default_instance
from holdfast.app.result import Result
from holdfast.attractor.backends.select import backend_of
from holdfast.attractor.directory_owner import reserved
from holdfast.attractor.event_stream import last_place, pipeline_events
from holdfast.attractor.events import PipelineEvent
from holdfast.attractor.interview import advance_and_interview, interview_open
from holdfast.attractor.interviewers import Interviewer
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.prepare import PipelineSource, PreparedPipeline, input_of, prepare_pipeline
from holdfast.attractor.program import PipelineSetup, program_of
from holdfast.attractor.progress import RunProgress, read_progress
from holdfast.attractor.registry import AnyHandler, HandlerRegistry
from holdfast.attractor.resume import ResumeOptions, ResumeResult, resume_directory
from holdfast.attractor.run_files import CHECKPOINT
from holdfast.attractor.run_files import logs_root as logs_root_of
from holdfast.attractor.stored_source import pipeline_of
from holdfast.frontends.dot.diagnostics import Diagnostic
from holdfast.frontends.dot.transforms import AnyTransform
from holdfast.frontends.dot.validate import PipelineRule
from holdfast.model.fingerprint import decode_graph
from holdfast.model.program import Program
from holdfast.runs.child_questions import look_for_changes
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId, new_run_id
from holdfast.types.status import RunStatus

_STATUS = {RunStatus.completed: "success", RunStatus.failed: "fail", RunStatus.cancelled: "cancelled"}


class PipelineResult(msgspec.Struct, frozen=True, kw_only=True):
    """`status`: success, fail, cancelled, or waiting (for a person or a time)."""

    status: str
    outcome: StageOutcome
    completed_nodes: tuple[str, ...]
    """In order; a stage that was visited twice is listed twice."""
    node_outcomes: Mapping[str, str]
    context: Mapping[str, Any]
    run_id: str
    logs_root: Path
    diagnostics: tuple[Diagnostic, ...] = ()
    holds: tuple[HoldRow, ...] = ()
    """The questions that are open."""

    @property
    def succeeded(self) -> bool:
        return self.status == StageStatus.SUCCESS


class Runner:
    """Runs pipelines on a Holdfast instance (default: the default instance).

    `backend` answers prompts: an object with `run(node, prompt, context)`, or a function. Without one every
    stage is simulated. `registry`: your handlers, by type. `interviewer` is asked at gates, which are also
    holds. `on_event` is called with each event of section 9.6 (`holdfast.attractor.events`).
    Without `logs_root` each run has a separate folder in `.holdfast/logs`, or in HOLDFAST_LOGS.
    """

    def __init__(
        self,
        hf: Holdfast | None = None,
        *,
        backend: Any = None,
        registry: HandlerRegistry | None = None,
        logs_root: str | Path | None = None,
        on_event: Callable[[PipelineEvent], None] | None = None,
        interviewer: Interviewer | None = None,
        auto_approve: bool = False,
        strict: bool = False,
        extra_rules: Sequence[PipelineRule] = (),
    ) -> None:
        self._hf = hf
        self._backend = None if backend is None else backend_of(backend)
        self.registry = registry or HandlerRegistry()
        self._logs = None if logs_root is None else Path(logs_root)
        self.on_event = on_event
        self._interviewer = interviewer
        self._auto_approve = auto_approve
        self._strict = strict
        self._extra_rules = list(extra_rules)
        self._transforms: list[AnyTransform] = []
        # By run: the place of the last event that `on_event` got.
        self._last_place: dict[str, str] = {}

    def register_transform(self, transform: AnyTransform) -> None:
        """Add a transform; it runs after the built-in ones and those added before it."""
        self._transforms.append(transform)

    def register_handler(self, type_string: str, handler: AnyHandler) -> None:
        self.registry.register(type_string, handler)

    @property
    def hf(self) -> Holdfast:
        return self._hf or default_instance()

    @property
    def pipeline_setup(self) -> PipelineSetup:
        return PipelineSetup(
            backend=self._backend,
            registry=self.registry,
            interviewer=self._interviewer,
            simulate=self._backend is None,
        )

    def prepare(self, source: PipelineSource, *, path: str = "") -> PreparedPipeline:
        """Read, transformed and checked. Raises PipelineSyntaxError and PipelineInvalidError."""
        return prepare_pipeline(
            source,
            self.pipeline_setup,
            path=path,
            strict=self._strict,
            transforms=self._transforms,
            extra_rules=self._extra_rules,
        )

    async def run(
        self,
        source: PipelineSource,
        *,
        context: Mapping[str, Any] | None = None,
        logs_root: str | Path | None = None,
        path: str = "",
        **options: Any,
    ) -> PipelineResult:
        """Start a run and advance it until it ends or waits. `context`: initial values; `options` are those
        of a run: `run_id`, `tenant`, `idempotency_key`, ..."""
        ready, service, run = await self._begin(source, path, logs_root, context, options)
        found = await self._advance(service, ready.program, run)
        return msgspec.structs.replace(found, diagnostics=ready.diagnostics)

    async def stream(
        self,
        source: PipelineSource,
        *,
        context: Mapping[str, Any] | None = None,
        logs_root: str | Path | None = None,
        path: str = "",
        **options: Any,
    ) -> AsyncGenerator[PipelineEvent]:
        """Like `run`, but yields events; the first one has the run's id."""
        ready, service, run = await self._begin(source, path, logs_root, context, options)
        async with aclosing(_events(service, run, self._run(service, ready.program, run))) as events:
            async for event in events:
                yield event

    async def _begin(
        self,
        source: PipelineSource,
        path: str,
        logs_root: str | Path | None,
        context: Mapping[str, Any] | None,
        options: dict[str, Any],
    ) -> tuple[PreparedPipeline, RunService, RunId]:
        ready = self.prepare(source, path=path)
        service = await self._service(ready.program)
        run_id = RunId(options.pop("run_id", None) or new_run_id())
        logs = Path(logs_root) if logs_root is not None else self._logs
        given = self._given(ready, logs, context)
        with reserved(logs, run_id, service.runtime, keyed="idempotency_key" in options):
            row, _ = await service.create(ready.program, given, run_id=run_id, **options)
        return ready, service, row.id

    def _given(
        self, ready: PreparedPipeline, logs: Path | None, context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return input_of(
            ready.pipeline,
            logs=logs,
            backend=self.pipeline_setup.asks_for,
            auto_approve=self._auto_approve,
            context=context,
        )

    async def resume(
        self,
        run: str | Path,
        *,
        source: PipelineSource | None = None,
        force: bool = False,
        fidelity: str = "",
        logs_root: str | Path | None = None,
        assume: str = "",
        **options: Any,
    ) -> PipelineResult:
        """Resume a run: after an answer, a crash, or a failure whose cause is fixed. A completed run stays as
        it is. `run`: its id, or its directory, which may be from another machine or another runner; then
        `source` is the pipeline, if the directory does not have it, and `force` allows it to differ;
        `assume` (success or fail) is the outcome of its last stage, if the directory does not say it.
        """
        service = await self._service(None)
        if not isinstance(run, Path) and not (Path(run) / CHECKPOINT).is_file():
            return await self._resume(service, await service.get(run))
        logs = None if logs_root is None else Path(logs_root)
        asked = ResumeOptions(
            source=source, force=force, fidelity=fidelity, logs=logs, assume=assume, options=options
        )
        setup = self.pipeline_setup
        found = await resume_directory(service, Path(run), self.prepare, self._given, asked, setup)
        if found.row is None:
            return _finished_result(found)
        if found.ready is not None:
            self.hf.register(found.ready.program)
            service.runtime.register(found.ready.program)
        return await self._resume(service, found.row, fresh=found.fresh)

    async def _resume(self, service: RunService, row: RunRow, *, fresh: bool = False) -> PipelineResult:
        program = await self._program(service, row.version, row.flow)
        after = "" if fresh or self.on_event is None else self._last_place.get(row.id)
        if after is None:
            after = await last_place(service, row.id)
        if row.status is RunStatus.failed:
            await service.request_resume(row.id)
        if self._interviewer is not None:
            await interview_open(service, row.id, pipeline_of(program.graph.spec), self._interviewer)
        return await self._advance(service, program, row.id, after=after)

    def run_sync(self, source: PipelineSource, **options: Any) -> PipelineResult:
        """`run` for code without an event loop."""
        return run_blocking(self.run(source, **options))

    async def _service(self, program: Program | None) -> RunService:
        if program is not None:
            self.hf.register(program)
        return await self.hf.service()

    async def _program(self, service: RunService, version: str, flow: str) -> Program:
        """The program of the stored graph, with this runner's handlers and backend."""
        stored = await service.store.flow(flow, version)
        if stored is None:
            return service.runtime.program_for(version, flow)
        program = program_of(decode_graph(stored.graph), self.pipeline_setup)
        self.hf.register(program)
        service.runtime.register(program)
        return program

    async def _run(self, service: RunService, program: Program, run: RunId) -> Result:
        once = partial(_run_until_idle, service, program, run)
        return await advance_and_interview(service, program, run, self._interviewer, once)

    async def _advance(
        self, service: RunService, program: Program, run: RunId, *, after: str = ""
    ) -> PipelineResult:
        """`after`: the place of the last event that was reported."""
        work = self._run(service, program, run)
        if self.on_event is None:
            result = await work
        else:
            async with aclosing(_events(service, run, work, after=after)) as events:
                async for event in events:
                    self._last_place[run] = event.place
                    self.on_event(event)
            result = await result_of(service, program, run)
        picture = await read_progress(service, run)
        row = await service.get(run)
        return _pipeline_result(result, picture, logs_root_of(picture.input, run, row.forked_from))


async def _events(
    service: RunService, run: RunId, work: Coroutine[Any, Any, Result], *, after: str = ""
) -> AsyncGenerator[PipelineEvent]:
    """Do the work and yield its events meanwhile. Raises what the work raises."""
    driving = asyncio.ensure_future(work)
    try:
        stored = follow(service, run, driving)
        async for event in pipeline_events(service, run, stored, after=after, driving=driving):
            yield event
        await driving
    finally:
        if not driving.done():
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)


async def _run_until_idle(service: RunService, program: Program, run: RunId) -> Result:
    if (await service.get(run)).status in (RunStatus.completed, RunStatus.cancelled):
        return await result_of(service, program, run)
    await look_for_changes(service, run)
    return await advance(service, program, run)


def _pipeline_result(result: Result, picture: RunProgress, logs: Path) -> PipelineResult:
    status = _STATUS.get(result.status, "waiting")
    reason = result.error.message if result.error is not None else ""
    notes = "Pipeline completed" if status == StageStatus.SUCCESS else ""
    return PipelineResult(
        status=status,
        outcome=StageOutcome(status=status, failure_reason=reason, notes=notes),
        completed_nodes=picture.completed,
        node_outcomes=picture.outcomes,
        context=picture.context,
        run_id=result.run_id,
        logs_root=logs,
        holds=tuple(result.holds),
    )


def _finished_result(found: ResumeResult) -> PipelineResult:
    """The result of a directory whose run has ended: nothing is done."""
    saved = found.saved
    return PipelineResult(
        status=StageStatus.SUCCESS,
        outcome=StageOutcome(notes="Pipeline completed"),
        completed_nodes=saved.completed,
        node_outcomes={name: saved.outcomes[name] for name in saved.completed},
        context=dict(saved.context),
        run_id=saved.run,
        logs_root=saved.folder,
    )


async def run_pipeline(source: PipelineSource, **options: Any) -> PipelineResult:
    """Run a pipeline until it ends or waits. Takes the options of `Runner` and of `Runner.run`."""
    of_runner = {
        "hf", "backend", "registry", "on_event", "interviewer", "auto_approve", "strict", "extra_rules",
    }  # fmt: skip
    mine = {name: options.pop(name) for name in list(options) if name in of_runner}
    return await Runner(**mine).run(source, **options)
