"""`breakpoints`: where runs stand still for whoever debugs them."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async

group = typer.Typer(no_args_is_help=False, rich_markup_mode=app.rich_markup_mode)
app.add_typer(group, name="breakpoints", short_help="List runs that stand at breakpoints; let them go on.")

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
    """List breakpoints at which runs stand; `continue` lets them go on."""
    if context.invoked_subcommand is not None:
        return 0
    from holdfast.cli.commands.breakpoints__breaking import list_breakpoints

    return run_async(list_breakpoints(flow, run, store=store, json=json))


@group.command(
    "continue",
    epilog="Examples:  holdfast breakpoints continue 3fa9c1 --resume   ·   "
    "holdfast breakpoints continue --all --flow refund",
)
def continue_(
    which: Annotated[
        Text, typer.Argument(help="A run (all its breakpoints) or one hold", metavar="RUN|HOLD")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every breakpoint at which a run stands")] = False,
    flow: OfFlow = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="And stop at no breakpoint in the rest of these runs")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the runs here and now")] = False,
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Let runs go on that stand at breakpoints: one, those of a run, or all."""
    from holdfast.cli.commands.breakpoints__breaking import BreakpointSelection, continue_breakpoints

    chosen = BreakpointSelection(which, every, flow)
    return run_async(continue_breakpoints(chosen, clear=clear, resume=resume, by=by, store=store, json=json))
