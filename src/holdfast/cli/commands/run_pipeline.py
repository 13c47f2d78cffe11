"""`run FILE.dot`: a pipeline, with its stages told as they end."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.app.loader import load_object
from holdfast.app.result import Result
from holdfast.attractor.interviewers import ConsoleInterviewer
from holdfast.attractor.prepare import Ready, input_of, make_ready
from holdfast.attractor.program import Fittings, program_of
from holdfast.attractor.progress import take_picture
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.run_files import logs_root
from holdfast.cli.commands.run__running import Manner
from holdfast.cli.drive import drive
from holdfast.cli.main import Exit
from holdfast.cli.options.backend import backend_asked_for, name_for_workers, require_model
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.results import command, exit_for, result_json, tell_holds
from holdfast.cli.output.screen import note, print_json, say
from holdfast.cli.output.watch import follow, watch
from holdfast.errors import InputError
from holdfast.frontends.dot.diagnostics import Severity
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.program import Program
from holdfast.runs.admission import InLine
from holdfast.runs.service import RunService
from holdfast.store.protocols import RunRow
from holdfast.types.event import Event
from holdfast.types.human_time import lasting
from holdfast.types.status import RunStatus

_MARKS = {"node.completed": "✓", "node.failed": "✗", "node.skipped": "-"}
ALL = 1_000_000


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about how a pipeline is to run."""

    simulate: bool = False
    auto_approve: bool = False
    ask: bool = False
    strict: bool = False
    logs: str | None = None
    backend: str | None = None
    handlers: str | None = None


async def run_file(
    file: str, context: Any, options: dict[str, Any], asked: Asked, manner: Manner, *, detach: bool
) -> Exit:
    if context is not None and not isinstance(context, dict):
        raise InputError("--input of a pipeline is a JSON object.", hint="Its keys become context values.")
    if detach and manner.watch:
        raise InputError("--detach leaves at once, and --watch stays.", hint="Give one of them.")
    _require_one_who_answers(asked, manner, detach=detach)
    fittings = fittings_of(asked)
    ready = make_ready(Path(file), fittings, strict=asked.strict)
    if not (asked.simulate or detach):
        require_model(ready, fittings)
    _warn(ready, manner)
    async with open_store_for_command(manner.store, must_exist=False) as hf:
        service = await hf.service()
        given = input_of(
            ready.pipeline,
            logs=Path(asked.logs) if asked.logs else None,
            backend=name_for_workers(asked.backend, simulate=asked.simulate),
            auto_approve=asked.auto_approve,
            context=cast("dict[str, Any] | None", context),
        )
        if detach:
            row, _ = await service.create(ready.program, given, **options)
            return _left(row, manner)
        started = await service.start(ready.program, given, **options)
        if isinstance(started, (InLine, RunRow)):
            row = started.row if isinstance(started, InLine) else started
            in_line = isinstance(started, InLine)
            return await _go_on(service, ready.program, row, manner, None, created=in_line)
        return await _go_on(service, ready.program, started[0].run, manner, started)


async def resume_pipeline(service: RunService, row: RunRow, asked: Asked, manner: Manner) -> Exit:
    """`row` has not ended, or has failed and was asked to go on."""
    fittings = fittings_of(asked)
    service.runtime.dialects = {**service.runtime.dialects, DIALECT: partial(program_of, fittings=fittings)}
    program = await service.runtime.find_program(row.version, row.flow)
    return await _go_on(service, program, row, manner, None)


def fittings_of(asked: Asked) -> Fittings:
    backend = backend_asked_for(asked.backend, simulate=asked.simulate)
    registry = load_object(asked.handlers, "--handlers") if asked.handlers else None
    if registry is not None and not isinstance(registry, HandlerRegistry):
        raise InputError(
            f"--handlers names a {type(registry).__name__}.", hint="Name a HandlerRegistry of your module."
        )
    # On stderr: stdout is for what the run comes to.
    who = ConsoleInterviewer(out=sys.stderr) if asked.ask else None
    return Fittings(backend=backend, registry=registry, interviewer=who)


def _require_one_who_answers(asked: Asked, manner: Manner, *, detach: bool) -> None:
    others = {"--auto-approve": asked.auto_approve, "--watch": manner.watch, "--detach": detach}
    other = next((name for name, given in others.items() if given), "")
    if asked.ask and other:
        raise InputError(f"--ask puts questions to you here, and {other} does not.", hint="Give one of them.")


def _warn(ready: Ready, manner: Manner) -> None:
    if not manner.json:
        for each in ready.diagnostics:
            if each.severity is Severity.warning:
                note(str(each))


def _left(row: RunRow, manner: Manner) -> Exit:
    if manner.json:
        print_json({"run": row.id, "status": row.status, "lane": row.lane})
    else:
        say(f"run {row.id} is {row.status} in lane {row.lane}. A worker goes on with it.")
    return Exit.ok


async def _go_on(
    service: RunService, program: Program, row: RunRow, manner: Manner, claimed: Any, *, created: bool = False
) -> Exit:
    if not manner.json:
        note(f"run {row.id}")
    known = await service.events(row.id, limit=ALL) if claimed is None and not created else []
    driving = asyncio.ensure_future(drive(service, program, row.id, claimed, created=created))
    if manner.watch:
        await watch(service, row, driving, json=manner.json)
    elif not manner.json:
        await _tell_stages(service, row, driving, after=known[-1].number if known else 0)
    return await tell_pipeline(service, row, await driving, manner)


async def tell_pipeline(service: RunService, row: RunRow, result: Result, manner: Manner) -> Exit:
    """How it stands, with what only pipelines have: the stages in order, and where the directory is."""
    picture = await take_picture(service, row.id)
    logs = logs_root(picture.input, row.id)
    if manner.json:
        print_json(
            {**result_json(result), "completed_nodes": list(picture.completed), "logs_root": str(logs)}
        )
        return exit_for(result.status)
    say(_summary(result.status, row, picture.completed, service.store.now()))
    if result.error is not None:
        say(f"reason: {result.error.message}")
    say(f"logs: {logs}")
    tell_holds(result.holds, manner.store)
    if result.failed or result.status is RunStatus.resumable:
        note(f"Go on with: {command('resume', result.run_id, manner.store)}")
    return exit_for(result.status)


async def _tell_stages(service: RunService, row: RunRow, driving: asyncio.Future[Any], *, after: int) -> None:
    """`after`: what was told by whoever advanced the run before."""
    async for event in follow(service, row.id, driving):
        line = stage_line(event) if event.number > after else ""
        if line:
            say(line)
            sys.stdout.flush()


def stage_line(event: Event) -> str:
    """One line for each stage that has ended, is tried again, or asks."""
    data = event.data
    where = f"{event.scope}{event.node}"
    took = data.get("duration_us")
    time = f"  {lasting(took)}" if isinstance(took, int) else ""
    if event.type in _MARKS:
        error: Any = data.get("error")
        outcome = str(data.get("outcome") or "")
        why = f"  {error['message']}" if error else "" if outcome in ("success", "") else f"  {outcome}"
        return f"{_MARKS[event.type]} {where}{time}{why}"
    if event.type == "node.retried":
        error = data.get("error")
        return f"↻ {where}  {error['message'] if error else 'tried again'}"
    return f"? {where}  {data.get('prompt', '')}" if event.type == "hold.opened" else ""


def _summary(status: RunStatus, row: RunRow, completed: tuple[str, ...], now: int) -> str:
    count = f"{len(completed)} stage{'' if len(completed) == 1 else 's'}"
    return f"{row.flow}: {status}, {count}, {lasting(now - row.created_at)}"
