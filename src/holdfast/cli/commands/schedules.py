"""`schedules`: flows that are started by the clock."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="Schedules: flows that any worker that carries them starts when their time has come.",
    epilog='Examples:  holdfast schedules set nightly --flow jobs.py:report --cron "0 2 * * *" '
    "--zone Europe/Berlin   ·   holdfast schedules next nightly   ·   holdfast schedules pause nightly",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(
    group, name="schedules", short_help="Schedules: set, list, show, next, pause, resume, trigger, delete."
)

Name = Annotated[str, typer.Argument(help="The schedule's name", metavar="NAME")]
Whose = Annotated[str, typer.Option("--tenant", help="Whose schedule")]


@group.command(
    "set",
    epilog='Examples:  holdfast schedules set nightly --flow jobs.py:report --cron "0 2 * * mon-fri" '
    "--zone Europe/Berlin   ·   holdfast schedules set poll --flow jobs.py:poll --every 15m --jitter 1m"
    "   ·   holdfast schedules set launch --flow jobs.py:send --at 2027-01-01T09:00 --zone America/New_York",
)
def set_(
    name: Name,
    flow: Annotated[
        str,
        typer.Option("--flow", help="FILE[:NAME] or module[:NAME], or the name of a flow the store knows"),
    ],
    cron: Annotated[
        Text, typer.Option(help='minute hour day month weekday: "0 9 * * mon-fri"; @daily', metavar="CRON")
    ] = None,
    every: Annotated[Text, typer.Option(help="15m, 6h, 1d; see --anchor", metavar="DURATION")] = None,
    at: Annotated[Text, typer.Option(help="Once: 2027-01-31T09:00", metavar="MOMENT")] = None,
    zone: Annotated[str, typer.Option(help="Of cron, and of moments without one", metavar="ZONE")] = "UTC",
    anchor: Annotated[
        Text, typer.Option(help="A moment that --every falls on; else 1970-01-01 UTC", metavar="MOMENT")
    ] = None,
    start: Annotated[Text, typer.Option(help="Not before", metavar="MOMENT")] = None,
    end: Annotated[Text, typer.Option(help="Not after", metavar="MOMENT")] = None,
    jitter: Annotated[
        Text, typer.Option(help="Up to so much later, each instant by its own share", metavar="DURATION")
    ] = None,
    missed: Annotated[
        str, typer.Option(help="Instants nobody was there for: skip, last (one run), all (each)")
    ] = "last",
    grace: Annotated[
        str, typer.Option(help="With --missed skip: so late still is on time", metavar="DURATION")
    ] = "1m",
    overlap: Annotated[
        Text,
        typer.Option(
            help="While the run before is under way: skip, allow, wait, cancel (the run before); "
            "without: skip, and wait with --missed all"
        ),
    ] = None,
    input: Annotated[Text, typer.Option(help="JSON, @file, or - for stdin", metavar="JSON")] = None,  # noqa: A002
    stamp: Annotated[
        Text, typer.Option(help="The field of the input that is given the instant", metavar="FIELD")
    ] = None,
    lane: Annotated[Text, typer.Option(help="The lane of its runs")] = None,
    priority: Annotated[int | None, typer.Option(help="Of its runs; higher is sooner")] = None,
    thread: Annotated[Text, typer.Option(help="The thread of its runs")] = None,
    deployment: Annotated[Text, typer.Option(help="Under which deployment", metavar="NAME")] = None,
    instance_key: Annotated[Text, typer.Option(help="Of which entity, under it", metavar="KEY")] = None,
    mode: Annotated[Text, typer.Option(help="barrier, strict or exit")] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Make a schedule, or change it. Where its times stay, so does its next instant."""
    from holdfast.cli.commands.schedules__timetable import set_schedule
    from holdfast.cli.options.json_input import read_json

    plan = {
        "cron": cron, "every": every, "at": at, "zone": zone, "anchor": anchor, "start": start, "end": end,
        "jitter": jitter, "missed": missed, "grace": grace, "overlap": overlap,
        "input": read_json(input, "--input"), "stamp": stamp, "lane": lane, "priority": priority,
        "thread": thread, "deployment": deployment, "instance_key": instance_key, "mode": mode,
    }  # fmt: skip
    return run_async(set_schedule(name, flow, plan, by, tenant, store=store, json=json))


@group.command("list", epilog="Example:  holdfast schedules list --json")
def list_(
    tenant: Annotated[Text, typer.Option(help="Only schedules of this tenant")] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Every schedule: when it fires next, and what is wrong with it."""
    from holdfast.cli.commands.schedules__timetable import list_schedules

    return run_async(list_schedules(tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules show nightly")
def show(name: Name, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """One schedule with all its settings."""
    from holdfast.cli.commands.schedules__timetable import show_schedule

    return run_async(show_schedule(name, tenant, store=store, json=json))


@group.command("next", epilog="Example:  holdfast schedules next nightly --count 10")
def next_(
    name: Name,
    count: Annotated[int, typer.Option(help="How many", min=1, max=1000)] = 5,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """When it fires next, in its own time zone."""
    from holdfast.cli.commands.schedules__timetable import next_instants

    return run_async(next_instants(name, count, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules pause nightly --reason stocktaking")
def pause(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why, for whoever looks at it")] = "",
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """It fires no more until it is resumed. What it has started goes on."""
    from holdfast.cli.commands.schedules__timetable import pause_schedule

    return run_async(pause_schedule(name, reason, by, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules resume nightly")
def resume(
    name: Name, by: By = "user:local", tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """It fires again from its next instant on. The pause is not caught up."""
    from holdfast.cli.commands.schedules__timetable import resume_schedule

    return run_async(resume_schedule(name, by, tenant, store=store, json=json))


@group.command(epilog="""Example:  holdfast schedules trigger nightly --input '{"day": "2026-12-24"}'""")
def trigger(
    name: Name,
    input: Annotated[  # noqa: A002
        Text, typer.Option(help="Instead of its own: JSON, @file or -", metavar="JSON")
    ] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """One run now, beside its instants, also while it is paused. Tells the run's id."""
    from holdfast.cli.commands.schedules__timetable import trigger_schedule
    from holdfast.cli.options.json_input import read_json

    given = read_json(input, "--input")
    return run_async(trigger_schedule(name, given, by, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules delete nightly")
def delete(name: Name, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """It is gone. What it has started goes on."""
    from holdfast.cli.commands.schedules__timetable import delete_schedule

    return run_async(delete_schedule(name, tenant, store=store, json=json))
