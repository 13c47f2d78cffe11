"""Advances a run, shows its progress and prints its result."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from holdfast.app.result import Result
from holdfast.cli.drive import Claimed, drive
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.output.console import print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import exit_for, print_known_key, print_result, result_json
from holdfast.cli.output.watch import show_slow_progress, watch
from holdfast.errors import InputError
from holdfast.model.program import Program
from holdfast.runs.concurrency_limits.run_limits import QueuedRun
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow


def refuse_pipeline_options(spec: str, given: dict[str, Any]) -> None:
    """Raises InputError: an option without effect is a mistake of the caller."""
    used = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if used:
        raise InputError(
            f"{', '.join(used)}: {spec} is not a pipeline.", hint="Pipelines are files named *.dot."
        )


async def drive_and_print(
    service: RunService,
    program: Program,
    row: RunRow,
    manner: OutputOptions,
    claimed: Claimed | None = None,
    *,
    created: bool = False,
) -> Exit:
    service.runtime.register(program)
    service.runtime.program_for(row.version, row.flow)
    if not manner.json:
        print_note(f"run {row.id}")
    driving = asyncio.ensure_future(drive(service, program, row.id, claimed, created=created))
    try:
        if manner.watch:
            await watch(service, row, driving, json=manner.json)
        elif not manner.json:
            await show_slow_progress(service, row, driving)
        result: Result = await driving
        print_run_result(result, manner)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone, the run is not: the exit code still says how it ended.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        result = await driving
    return exit_for(result.status)


async def drive_started(
    service: RunService, program: Program, started: Claimed | QueuedRun | RunRow, manner: OutputOptions
) -> Exit:
    """`started`: what `start_run` returned."""
    if isinstance(started, QueuedRun):
        return await drive_and_print(service, program, started.row, manner, created=True)
    if not isinstance(started, RunRow):
        return await drive_and_print(service, program, started[0].run, manner, started)
    if not manner.json:
        print_known_key(started)
    return await drive_and_print(service, program, started, manner)


def print_run_result(result: Result, manner: OutputOptions) -> None:
    if manner.json:
        print_json(result_json(result))
    else:
        print_result(result, manner.store)
