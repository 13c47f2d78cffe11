"""`run`, `resume`, `answer`, `cancel`: the commands that change something."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.app.flow import Flow
from holdfast.app.loader import absolute, load_flow
from holdfast.app.result import Result
from holdfast.cli.drive import Claimed, drive
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command, recall_source, remember_source
from holdfast.cli.output.results import HOLDS_SHOWN, command, exit_for, hold_json, print_result, result_json
from holdfast.cli.output.screen import print_json, print_line, print_note
from holdfast.cli.output.watch import show_slow_progress, watch
from holdfast.errors import (
    FlowNotFoundError,
    HoldNotFoundError,
    InputError,
    RunNotFoundError,
    StateError,
)
from holdfast.model.fingerprint import dialect_of
from holdfast.runs.admission import QueuedRun
from holdfast.runs.service import RunService
from holdfast.store.protocols import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.status import ENDED, RunStatus


class OutputOptions(msgspec.Struct, frozen=True):
    """How a command shows what happens."""

    store: str | None
    watch: bool
    json: bool


async def run_flow(spec: str, given: Any, options: dict[str, Any], manner: OutputOptions) -> Exit:
    flow = load_flow(spec)
    program = flow.program()
    async with open_store_for_command(manner.store, must_exist=False) as hf:
        service = await hf.service()
        try:
            started = await service.start(program, {} if given is None else given, **options)
        except StateError as error:
            raise _input_error(flow, error) from error
        remember_source(manner.store, program.version, absolute(spec))
        if isinstance(started, QueuedRun):
            return await _advance(service, flow, started.row, manner, created=True)
        if not isinstance(started, RunRow):
            return await _advance(service, flow, started[0].run, manner, started)
        if not manner.json:
            print_note(f"A run with this idempotency key exists already: {started.id}.")
        return await _advance(service, flow, started, manner)


def _input_error(flow: Flow, error: StateError) -> StateError:
    return StateError(f"the input does not fit flow {flow.name!r}: {error.message}", hint=error.hint)


def refuse_pipeline_options(spec: str, given: dict[str, Any]) -> None:
    """Raises InputError: an option that does nothing is a slip."""
    used = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if used:
        raise InputError(
            f"{', '.join(used)}: {spec} is no pipeline.", hint="Pipelines are files named *.dot."
        )


async def start_detached(spec: str, given: Any, options: dict[str, Any], manner: OutputOptions) -> Exit:
    """The run is durable, and nobody here advances it."""
    if manner.watch:
        raise InputError("--detach leaves at once, and --watch stays.", hint="Give one of them.")
    flow = load_flow(spec)
    program = flow.program()
    async with open_store_for_command(manner.store, must_exist=False) as hf:
        service = await hf.service()
        try:
            row, fresh = await service.create(program, {} if given is None else given, **options)
        except StateError as error:
            raise _input_error(flow, error) from error
        remember_source(manner.store, program.version, absolute(spec))
    if manner.json:
        print_json({"run": row.id, "status": row.status, "lane": row.lane, "created": fresh})
        return Exit.ok
    if not fresh:
        print_note(f"A run with this idempotency key exists already: {row.id}.")
    print_line(f"run {row.id} is {row.status} in lane {row.lane}.")
    print_line(f"A worker goes on with it: {command('worker', spec, store=manner.store)}")
    return Exit.ok


async def resume_run(
    run: str,
    spec: str | None,
    manner: OutputOptions,
    breaks: Sequence[str] = (),
    *,
    accept_loss: bool = False,
    of_pipeline: dict[str, Any] | None = None,
) -> Exit:
    async with open_store_for_command(manner.store, must_exist=True) as hf:
        service = await hf.service()
        row = await service.get(run)
        if row.status in (RunStatus.completed, RunStatus.cancelled):
            return await print_ended(service, row, manner)
        if spec is None and dialect_of(row.version) in service.runtime.dialects:
            from holdfast.cli.commands.run_pipeline import PipelineOptions, resume_pipeline

            if row.status is RunStatus.failed or breaks:
                await service.request_resume(row.id, breaks=breaks, accept_loss=accept_loss)
            return await resume_pipeline(service, row, PipelineOptions(**(of_pipeline or {})), manner)
        refuse_pipeline_options(row.flow, of_pipeline or {})
        flow = load_flow(spec or recall_source(manner.store, row.flow, row.version))
        service.runtime.register(flow.program())
        service.runtime.program_for(row.version, row.flow)
        if row.status is RunStatus.failed or breaks:
            await service.request_resume(row.id, breaks=breaks, accept_loss=accept_loss)
        if spec is not None:
            remember_source(manner.store, flow.program().version, absolute(spec))
        return await _advance(service, flow, row, manner)


async def print_ended(service: RunService, row: RunRow, manner: OutputOptions) -> Exit:
    """Nothing is executed; its result is shown, also where its code is not at hand."""
    if not manner.json:
        been = "been " if row.status is RunStatus.cancelled else ""
        print_note(f"run {row.id} has {been}{row.status} already; nothing was executed.")
    last = await service.latest(row.id)
    result = Result(row.id, row.status, last.state, last.artifacts, None, [])
    if dialect_of(row.version) in service.runtime.dialects:
        from holdfast.attractor.export import catch_up
        from holdfast.cli.commands.run_pipeline import print_pipeline

        await catch_up(service, row)
        return await print_pipeline(service, row, result, manner)
    _print_run_result(result, manner)
    return exit_for(row.status)


async def _advance(
    service: RunService,
    flow: Flow,
    row: RunRow,
    manner: OutputOptions,
    claimed: Claimed | None = None,
    *,
    created: bool = False,
) -> Exit:
    program = flow.program()
    service.runtime.register(program)
    service.runtime.program_for(row.version, row.flow)
    if not manner.json:
        print_note(f"run {row.id}")
    driving = asyncio.ensure_future(drive(service, program, row.id, claimed, created=created))
    if manner.watch:
        await watch(service, row, driving, json=manner.json)
    elif not manner.json:
        await show_slow_progress(service, row, driving)
    result: Result = await driving
    _print_run_result(result, manner)
    return exit_for(result.status)


def _print_run_result(result: Result, manner: OutputOptions) -> None:
    if manner.json:
        print_json(result_json(result))
    else:
        print_result(result, manner.store)


async def answer_hold(
    which: str, decision: str, *, data: Any, comment: str | None, by: str, go_on: bool, manner: OutputOptions
) -> Exit:
    async with open_store_for_command(manner.store, must_exist=True) as hf:
        service = await hf.service()
        hold = await _find_hold(service, which)
        decided = await service.answer(hold.id, decision, data=data, comment=comment, by=by)
        if not go_on:
            _print_answer(decided, decision, manner)
            return Exit.ok
    return await resume_run(hold.run, None, manner)


def _print_answer(decided: HoldRow, decision: str, manner: OutputOptions) -> None:
    if manner.json:
        print_json(hold_json(decided))
        return
    print_line(f"Recorded: {decision!r} for {decided.node!r} of run {decided.run}.")
    print_note(
        f"A worker goes on with the run, or you do: {command('resume', decided.run[:8], manner.store)}"
    )


_MIN_PREFIX = 6
"""Characters of a hold's id that name it where it is open."""


async def _find_hold(service: RunService, which: str) -> HoldRow:
    """A hold's own id or the beginning of an open one's, or a run with exactly one open hold."""
    hold = await service.store.hold(HoldId(which))
    if hold is not None:
        return hold
    try:
        row = await service.get(which)
    except RunNotFoundError:
        begun = [
            hold for hold in await service.holds() if len(which) >= _MIN_PREFIX and hold.id.startswith(which)
        ]
        if len(begun) == 1:
            return begun[0]
        raise HoldNotFoundError(
            f"{which!r} is neither a hold nor a run in this store.",
            hint="`holdfast runs --status pending_input` lists them.",
        ) from None
    holds = await service.holds(row.id)
    if len(holds) == 1:
        return holds[0]
    if holds:
        names = "; ".join(f"{hold.id} ({hold.prompt})" for hold in holds[:HOLDS_SHOWN])
        raise InputError(
            f"run {row.id} has {len(holds)} open holds.", hint=f"Name the one you answer: {names}."
        )
    answered = _last_answer(await service.holds(row.id, open_only=False))
    raise HoldNotFoundError(f"run {row.id} ({row.status}) has no open hold.{answered}")


def _last_answer(holds: list[HoldRow]) -> str:
    """Who was first, for whoever comes second."""
    decided = [hold for hold in holds if hold.resolution and hold.resolved_at]
    if not decided:
        return ""
    last = max(decided, key=lambda hold: hold.resolved_at or 0)
    return f" The last one, at {last.node!r}, was decided by {last.resolved_by or 'somebody'}."


async def cancel_run(run: str, *, reason: str, by: str, manner: OutputOptions) -> Exit:
    """Asks; where nobody has the run and its code is found, also does it."""
    async with open_store_for_command(manner.store, must_exist=True) as hf:
        service = await hf.service()
        row = await service.cancel(run, reason=reason, by=by)
        if row.status not in ENDED and row.worker is None:
            row = await _cancel_here(service, row, manner.store)
        if manner.json:
            print_json({"run_id": row.id, "status": str(row.status)})
        elif row.status is RunStatus.cancelled:
            print_line(f"Run {row.id} is cancelled.")
        else:
            print_line(f"Asked run {row.id} to stop; whoever advances it next does so.")
        return Exit.ok


async def _cancel_here(service: RunService, row: RunRow, store: str | None) -> RunRow:
    try:
        program = load_flow(recall_source(store, row.flow, row.version)).program()
    except (FlowNotFoundError, InputError):
        return row  # a worker that carries the flow will do it
    service.runtime.register(program)
    if row.version in service.runtime.programs:
        await drive(service, program, row.id)
    return await service.get(row.id)
