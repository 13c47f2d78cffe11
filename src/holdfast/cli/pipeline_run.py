"""Running a pipeline (`file.dot`) from the command line, with a line for each stage that ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.app.flow import follow
from holdfast.app.loader import load_object
from holdfast.app.result import Result
from holdfast.attractor.directory_owner import reserved
from holdfast.attractor.interview import advance_and_interview
from holdfast.attractor.interviewers import ConsoleInterviewer, Interviewer
from holdfast.attractor.prepare import PreparedPipeline, input_of, prepare_pipeline
from holdfast.attractor.program import PipelineDialect, PipelineSetup
from holdfast.attractor.progress import read_progress
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.run_files import logs_root
from holdfast.cli.drive import drive, start_run
from holdfast.cli.flow_check import print_warnings
from holdfast.cli.main import Exit
from holdfast.cli.options.backend import backend_asked_for, default_model_note, require_model
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import (
    command,
    exit_for,
    print_holds,
    result_json,
    row_json,
    shown_run,
    status_text,
)
from holdfast.cli.output.watch import POLL, watch
from holdfast.errors import InputError
from holdfast.frontends.dot.diagnostics import DiagnosticSeverity
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.program import Program
from holdfast.model.shown_names import shown_name
from holdfast.runs.child_questions import CHILD_CHANGED, look_for_changes
from holdfast.runs.concurrency_limits.run_limits import QueuedRun
from holdfast.runs.run_view import ShownRun
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.event import Event
from holdfast.types.hold import CONSUME
from holdfast.types.human_time import human_duration
from holdfast.types.ids import new_run_id
from holdfast.types.status import RunStatus, run_label

_MARKS = {"node.completed": "✓", "node.failed": "✗", "node.skipped": "-"}
ALL = 1_000_000


class PipelineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The pipeline options of the command line."""

    simulate: bool = False
    auto_approve: bool = False
    ask: bool = False
    strict: bool = False
    logs: str | None = None
    backend: str | None = None
    handlers: str | None = None


async def run_file(
    file: str,
    context: Any,
    options: dict[str, Any],
    asked: PipelineOptions,
    manner: OutputOptions,
    *,
    detach: bool,
) -> Exit:
    if context is not None and not isinstance(context, dict):
        raise InputError("--input of a pipeline is a JSON object.", hint="Its keys become context values.")
    if detach and manner.watch:
        raise InputError("--detach and --watch cannot both be given.", hint="Use one of them.")
    _require_answerer(asked, manner, detach=detach)
    setup = pipeline_setup(asked)
    ready = prepare_pipeline(Path(file), setup, strict=asked.strict)
    if not (asked.simulate or detach):
        require_model(ready.pipeline, setup)
    if note := default_model_note(ready, setup):
        print_note(note)
    _warn(ready, manner)
    async with open_store_for_command(manner.store, must_exist=False, engine=manner.engine) as hf:
        service = await hf.service()
        logs = Path(asked.logs) if asked.logs else None
        options = {**options, "run_id": options.get("run_id") or new_run_id()}
        given = input_of(
            ready.pipeline,
            logs=logs,
            backend=setup.asks_for,
            auto_approve=asked.auto_approve,
            context=cast("dict[str, Any] | None", context),
        )
        run_id, keyed = options["run_id"], "idempotency_key" in options
        with reserved(logs, run_id, service.runtime, keyed=keyed):
            if detach:
                row, _ = await service.create(ready.program, given, **options)
                return _print_detached(await shown_run(service.store, row), manner)
            started = await start_run(service, ready.program, given, **options)
        if isinstance(started, (QueuedRun, RunRow)):
            row = started.row if isinstance(started, QueuedRun) else started
            in_line = isinstance(started, QueuedRun)
            who = setup.interviewer
            return await _advance(service, ready.program, row, manner, None, created=in_line, who=who)
        return await _advance(service, ready.program, started[0].run, manner, started)


async def resume_pipeline(
    service: RunService,
    row: RunRow,
    asked: PipelineOptions,
    manner: OutputOptions,
    request: Callable[[], Awaitable[object]] | None = None,
) -> Exit:
    """`row` has not ended, or has failed. `request`: writes that it is to be resumed; only if this process
    has what it needs."""
    setup = pipeline_setup(asked)
    service.runtime.dialects = {**service.runtime.dialects, DIALECT: PipelineDialect(setup)}
    program = await service.runtime.find_program(row.version, row.flow)
    if request is not None:
        await request()
    return await _advance(service, program, row, manner, None, who=setup.interviewer)


def pipeline_setup(asked: PipelineOptions) -> PipelineSetup:
    name, backend = backend_asked_for(asked.backend, simulate=asked.simulate)
    registry = _registry(asked.handlers)
    # On stderr: stdout is for the result of the run.
    who = ConsoleInterviewer(out=sys.stderr) if asked.ask else None
    return PipelineSetup(
        backend=backend, registry=registry, interviewer=who, named_as=name, simulate=asked.simulate
    )


def worker_setup(backends: Sequence[str], handlers: str | None) -> PipelineSetup:
    """What a worker is given: one default backend, and others by name. Raises InputError."""
    found = [backend_asked_for(each, simulate=False) for each in backends]
    defaults = [backend for name, backend in found if not name]
    if len(defaults) > 1:
        raise InputError(
            "--backend is given more than once without a name.", hint="Name the others: --backend NAME=SPEC."
        )
    named = {name: backend for name, backend in found if name and backend is not None}
    if len(named) + len(defaults) < len(found):
        raise InputError("two backends have the same name.", hint="Give each --backend its own name.")
    default = defaults[0] if defaults else None
    return PipelineSetup(backend=default, backends=named, registry=_registry(handlers))


def _registry(handlers: str | None) -> HandlerRegistry | None:
    registry = load_object(handlers, "--handlers") if handlers else None
    if registry is not None and not isinstance(registry, HandlerRegistry):
        raise InputError(
            f"--handlers names a {type(registry).__name__}, not a HandlerRegistry.",
            hint="Name a HandlerRegistry.",
        )
    return registry


def _require_answerer(asked: PipelineOptions, manner: OutputOptions, *, detach: bool) -> None:
    others = {"--auto-approve": asked.auto_approve, "--watch": manner.watch, "--detach": detach}
    other = next((name for name, given in others.items() if given), "")
    if asked.ask and other:
        raise InputError(f"--ask and {other} cannot both be given.", hint="Use one of them.")


def _warn(ready: PreparedPipeline, manner: OutputOptions) -> None:
    if not manner.json:
        for each in ready.diagnostics:
            if each.severity is DiagnosticSeverity.warning:
                print_warnings([str(each)])


def _print_detached(row: ShownRun, manner: OutputOptions) -> Exit:
    if manner.json:
        print_json(row_json(row))
    else:
        print_line(f"run {row.id} is {status_text(row)} in lane {row.lane}. A worker advances it.")
    return Exit.ok


async def _advance(
    service: RunService,
    program: Program,
    row: RunRow,
    manner: OutputOptions,
    claimed: Any,
    *,
    created: bool = False,
    who: Interviewer | None = None,
) -> Exit:
    """`who`: asks the gates of a run on an engine; elsewhere they ask it themselves."""
    if not manner.json:
        print_note(f"run {row.id}")
    known = await service.events(row.id, limit=ALL) if claimed is None and not created else []
    if claimed is None:
        await look_for_changes(service, row.id)
    once = partial(drive, service, program, row.id, claimed, created=created)
    driving = asyncio.ensure_future(advance_and_interview(service, program, row.id, who, once))
    if manner.watch:
        await watch(service, row, driving, json=manner.json)
    elif not manner.json:
        await _print_stages(service, row, driving, after=known[-1].number if known else 0)
    return await print_pipeline(service, row, await driving, manner)


async def print_pipeline(service: RunService, row: RunRow, result: Result, manner: OutputOptions) -> Exit:
    """The result, with the fields of pipelines: the stages in order, and the run directory."""
    picture = await read_progress(service, row.id)
    logs = logs_root(picture.input, row.id, row.forked_from)
    if manner.json:
        print_json(
            {**result_json(result), "completed_nodes": list(picture.completed), "logs_root": str(logs)}
        )
        return exit_for(result.status)
    print_line(_summary(result.status, row, picture.completed, service.store.now()))
    if result.error is not None:
        print_line(f"reason: {result.error.message}")
    print_line(f"logs: {logs}")
    print_holds(result.holds, manner.store)
    if result.failed or result.status is RunStatus.resumable:
        print_note(f"Resume it: {command('resume', result.run_id, manner.store)}")
    return exit_for(result.status)


async def _print_stages(
    service: RunService, row: RunRow, driving: asyncio.Future[Any], *, after: int
) -> None:
    """`after`: the place of the last event that was already printed."""
    async for event in follow(service, row.id, driving, poll=POLL):
        line = stage_line(event) if event.number > after else ""
        if line:
            print_line(line)
            sys.stdout.flush()


def stage_line(event: Event) -> str:
    """One line for each stage that ended, is retried, or asks."""
    data = event.data
    where = shown_name(f"{event.scope}{event.node}")
    took = data.get("duration_us")
    time = f"  {human_duration(took)}" if isinstance(took, int) else ""
    if event.type in _MARKS:
        error: Any = data.get("error")
        outcome = str(data.get("outcome") or "")
        why = f"  {error['message']}" if error else "" if outcome in ("success", "") else f"  {outcome}"
        return f"{_MARKS[event.type]} {where}{time}{why}"
    if event.type == "node.retried":
        error = data.get("error")
        return f"↻ {where}  {error['message'] if error else 'tried again'}"
    if event.type != "hold.opened":
        return ""
    prompt = str(data.get("prompt", ""))
    # Of a manager: the question of its child is printed when the run waits.
    manages = data.get("type") == CONSUME and CHILD_CHANGED in prompt
    return f"? {where}  {'a question of its child' if manages else prompt}"


def _summary(status: RunStatus, row: RunRow, completed: tuple[str, ...], now: int) -> str:
    count = f"{len(completed)} stage{'' if len(completed) == 1 else 's'}"
    return f"{row.flow}: {run_label(status)}, {count}, {human_duration(now - row.created_at)}"
