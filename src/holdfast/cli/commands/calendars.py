"""`calendars`: whose hours the deadlines of holds are counted by."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async

calendars = typer.Typer(
    no_args_is_help=True,
    help="Business calendars: the hours in which `4bh` and `2bd` count.",
    epilog="Examples:  holdfast calendars set default office.toml   ·   holdfast calendars show default",
)
app.add_typer(calendars, name="calendars")

Name = Annotated[str, typer.Argument(help="The calendar; `default` is that of holds that name none")]
File = Annotated[str, typer.Argument(help="Its rules in TOML or JSON; - for stdin", metavar="FILE")]
Whose = Annotated[Text, typer.Option("--tenant", help="Of this tenant")]
Days = Annotated[int, typer.Option("--days", help="How many days ahead are shown", min=1, max=366)]


@calendars.command("list", epilog="Example:  holdfast calendars list")
def list_(tenant: Whose = None, store: Store = None, json: Json = False) -> int:
    """Which calendars there are."""
    from holdfast.cli.commands.calendars__scheduling import list_calendars

    return run_async(list_calendars(tenant, store=store, json=json))


@calendars.command(epilog="Example:  holdfast calendars show default --days 14")
def show(name: Name, days: Days = 7, tenant: Whose = None, store: Store = None, json: Json = False) -> int:
    """A calendar's rules, and when it is open in the coming days."""
    from holdfast.cli.commands.calendars__scheduling import show_calendar

    return run_async(show_calendar(name, days, tenant, store=store, json=json))


@calendars.command("set", epilog="Example:  holdfast calendars set default office.toml")
def set_(
    name: Name,
    file: File,
    by: By = "user:local",
    tenant: Whose = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Write a calendar. Deadlines of open holds that were counted by it are counted again."""
    from holdfast.cli.commands.calendars__scheduling import set_calendar

    return run_async(set_calendar(name, file, by, tenant, store=store, json=json))


@calendars.command(
    epilog="Examples:  holdfast calendars check office.toml"
    "   ·   holdfast calendars check office.toml --add 4bh --from 2026-01-09T15:00+01:00"
)
def check(
    file: File,
    add: Annotated[
        Text, typer.Option("--add", help="When this much time has passed: 30bm, 4bh, 2bd", metavar="LENGTH")
    ] = None,
    start: Annotated[
        Text, typer.Option("--from", help="From then on, in ISO 8601; else from now", metavar="WHEN")
    ] = None,
    json: Json = False,
) -> int:
    """Read a calendar's rules without writing them, and try them out."""
    from holdfast.cli.commands.calendars__scheduling import check_calendar

    return check_calendar(file, add, start, json=json)
