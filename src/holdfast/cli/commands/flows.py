"""`flows`: which versions there are, what a new one would break, and moving runs to it."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="Versions of flows: list them, check a new one against the runs that live, move runs to it.",
    epilog="Examples:  holdfast flows list   ·   holdfast flows check refund.py   ·   "
    "holdfast flows migrate refund.py --dry-run",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="flows", short_help="Versions of flows: list, check, migrate.")

New = Annotated[
    str,
    typer.Argument(help="The new version: path/to/file.py[:name] or package.module[:name]", metavar="NEW"),
]
Which = Annotated[Text, typer.Option("--flow", help="Which flow of NEW, if it has several", metavar="NAME")]


@group.command("list", epilog="Examples:  holdfast flows list   ·   holdfast flows list --flow refund --json")
def list_(
    flow: Annotated[Text, typer.Option(help="Only this flow")] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Flows and their versions in the store: runs by status, when they were used, where their code is."""
    from holdfast.cli.commands.flows__flows import list_flows

    return run_async(list_flows(flow, store=store, json=json))


@group.command(
    epilog="Examples:  holdfast flows check refund.py   ·   holdfast flows check shop.flows:refund --json"
)
def check(new: New, flow: Which = None, store: Store = None, json: Json = False) -> int:
    """Each live run on another version: would it fit NEW, and if not, why, and what would mend it.

    Changes nothing. Exit code 1 where some run would break.
    """
    from holdfast.cli.commands.flows__flows import check_flow

    return run_async(check_flow(new, flow, store=store, json=json))


@group.command(
    epilog="Examples:  holdfast flows migrate refund.py --dry-run   ·   "
    "holdfast flows migrate refund.py --run 3fa9c1"
)
def migrate(
    new: New,
    flow: Which = None,
    run: Annotated[
        list[str] | None, typer.Option("--run", help="Only this run; may be repeated", metavar="RUN")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="On copies in memory: show what each run would do next")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="With --run: past reasons that you answer for; the event tells them"),
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Move live runs to NEW, as it declares with `migrate(...)`. A run that does not fit stays as it is.

    Holds keep their ids and answers. Exit code 1 where some run was not moved.
    """
    from holdfast.cli.commands.flows__flows import FlowMigrateOptions, migrate_runs

    return run_async(
        migrate_runs(FlowMigrateOptions(new, flow, run or [], dry_run, force), store=store, json=json)
    )
