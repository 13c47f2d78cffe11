"""`holdfast breakpoints`: runs that stopped at a breakpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_list
from holdfast.cli.output.results import command, hold_json
from holdfast.cli.output.tables import print_table
from holdfast.errors import HoldDecidedError, HoldNotFoundError, InputError
from holdfast.types.human_time import clock_time
from holdfast.types.ids import HoldId
from holdfast.types.status import run_label

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.types.hold import HoldRow

group = typer.Typer(no_args_is_help=False, rich_markup_mode=app.rich_markup_mode)
app.add_typer(group, name="breakpoints")
OfFlow = Annotated[Text, typer.Option(help="Only runs of this flow")]


@group.callback(
    invoke_without_command=True,
    epilog="Examples:  holdfast breakpoints   ·   holdfast breakpoints --run 3fa9c1 --json",
)
def breakpoints(
    context: typer.Context,
    flow: OfFlow = None,
    run: Annotated[Text, typer.Option(help="Only this run", metavar="RUN")] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """List runs that stopped at a breakpoint, and continue them."""
    if context.invoked_subcommand is not None:
        return 0
    return run_async(list_breakpoints(flow, run, store=store, json=json))


@group.command(
    "continue",
    epilog="Examples:  holdfast breakpoints continue 3fa9c1 --resume   ·   "
    "holdfast breakpoints continue --all --flow refund",
)
def continue_(
    which: Annotated[
        Text, typer.Argument(help="A run (all its breakpoints) or a hold id", metavar="RUN|HOLD")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All breakpoints at which runs stopped")] = False,
    flow: OfFlow = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Also ignore all later breakpoints of these runs")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Advance the runs in this process")] = False,
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Continue runs from breakpoints: one, those of a run, or all."""
    chosen = BreakpointSelection(which, every, flow)
    return run_async(continue_breakpoints(chosen, clear=clear, resume=resume, by=by, store=store, json=json))


class BreakpointSelection(msgspec.Struct, frozen=True):
    """The selected breakpoints."""

    which: str | None
    every: bool
    flow: str | None


async def list_breakpoints(flow: str | None, run: str | None, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.service()).breakpoints(run=run, flow=flow)
    if json:
        print_list([hold_json(hold) for hold in found])
    elif not found:
        print_line("No run stopped at a breakpoint.")
    else:
        print_table(("hold", "run", "flow", "before", "since"), [_cells(hold) for hold in found])
        print_note(f"Resume it: {command('breakpoints continue', f'{found[0].run[:8]} --resume', store)}")
    return Exit.ok


def _cells(hold: HoldRow) -> tuple[str, ...]:
    return (hold.id, hold.run[:8], hold.flow, _before(hold), clock_time(hold.created_at)[11:])


def _before(hold: HoldRow) -> str:
    from holdfast.model.breakpoints import SUFFIX, place_of

    place = place_of(hold.scope, hold.node.removesuffix(SUFFIX))
    return f"{place} (visit {hold.visit})" if hold.visit > 1 else place


async def continue_breakpoints(
    chosen: BreakpointSelection, *, clear: bool, resume: bool, by: str, store: str | None, json: bool
) -> Exit:
    from holdfast.cli.commands.resume import resume_run

    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        wanted = await _find(service, chosen)
        if clear:
            for run in dict.fromkeys(hold.run for hold in wanted):
                await service.request_resume(run, no_breaks=True)
        done = [hold for each in wanted if (hold := await _continue(service, each, by)) is not None]
    runs = list(dict.fromkeys(hold.run for hold in done))
    if resume:
        return max(
            [await resume_run(run, None, OutputOptions(store, False, json)) for run in runs], default=Exit.ok
        )
    if json:
        print_list([hold_json(hold) for hold in done])
        return Exit.ok
    _print_continued(done, runs, store)
    return Exit.ok


def _print_continued(done: list[HoldRow], runs: Sequence[str], store: str | None) -> None:
    for hold in done:
        print_line(f"Continued before {_before(hold)} of run {hold.run}.")
    if not done:
        print_line("No run stopped at a breakpoint.")
    for run in runs[:1]:
        print_note(f"A worker resumes it, or run: {command('resume', run[:8], store)}")


async def _continue(service: RunService, hold: HoldRow, by: str) -> HoldRow | None:
    try:
        return await service.answer(hold.id, "continue", by=by, channel="cli")
    except HoldDecidedError:
        return None  # another caller was faster: it continues already


async def _find(service: RunService, chosen: BreakpointSelection) -> list[HoldRow]:
    from holdfast.model.breakpoints import TYPE

    if (chosen.which is None) is not chosen.every:
        raise InputError("name a run or a hold, or use --all.", hint="`holdfast breakpoints` lists them.")
    if chosen.which is None:
        return await service.breakpoints(flow=chosen.flow)
    hold = await service.store.hold(HoldId(chosen.which))
    if hold is not None and hold.type == TYPE:
        return [hold]
    if hold is not None:
        raise InputError(
            f"hold {hold.id} is a question ({hold.type}), not a breakpoint.",
            hint="`holdfast answer` decides it.",
        )
    found = await service.breakpoints(run=chosen.which, flow=chosen.flow)
    if not found:
        row = await service.get(chosen.which)
        raise HoldNotFoundError(f"run {row.id} ({run_label(row.status)}) has not stopped at a breakpoint.")
    return found
