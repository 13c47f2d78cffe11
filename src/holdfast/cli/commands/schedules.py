"""`holdfast schedules`: flows that start at set times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.store import open_store_for_command, remember_source
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.schedules import (
    firing_cells,
    firing_json,
    moment_text,
    next_text,
    schedule_cells,
    schedule_fields,
    schedule_json,
    when_text,
)
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.errors import FlowNotFoundError
from holdfast.types.clock import iso

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.runs.schedules.schedule import Schedule

group = typer.Typer(
    no_args_is_help=True,
    help="Set, list, pause, trigger, fill in and delete schedules.\n\n"
    "Any worker that serves the flow starts it when its time has come.",
    epilog='Examples:  holdfast schedules set nightly --flow jobs.py:report --cron "0 2 * * *" '
    "--zone Europe/Berlin   ·   holdfast schedules next nightly   ·   holdfast schedules pause nightly",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="schedules")
Name = Annotated[str, typer.Argument(help="Schedule name", metavar="NAME")]
Whose = Annotated[str, typer.Option("--tenant", help="Tenant")]
FlowAddress = Annotated[
    str,
    typer.Option(
        "--flow", help="FILE[:NAME], module[:NAME], or the name of a flow in the store", metavar="FLOW"
    ),
]
Cron = Annotated[
    Text, typer.Option(help='minute hour day month weekday: "0 9 * * mon-fri"; @daily', metavar="CRON")
]
Every = Annotated[Text, typer.Option(help="Interval: 15m, 6h, 1d; see --anchor", metavar="DURATION")]
At = Annotated[Text, typer.Option(help="Start once, at this time: 2027-01-31T09:00", metavar="TIME")]
Zone = Annotated[str, typer.Option(help="Time zone of --cron and of times without one", metavar="ZONE")]
Anchor = Annotated[
    Text, typer.Option(help="A time that --every counts from (default: 1970-01-01 UTC)", metavar="TIME")
]
Jitter = Annotated[Text, typer.Option(help="Random delay of each start, up to this long", metavar="DURATION")]
Missed = Annotated[
    str,
    typer.Option(
        help="Starts missed while no worker ran: skip, last (one run), all (each)", metavar="skip|last|all"
    ),
]
Grace = Annotated[
    str, typer.Option(help="With --missed skip: a start this late still counts", metavar="DURATION")
]
Overlap = Annotated[
    Text,
    typer.Option(
        help="If the previous run is still active: skip, allow, wait or cancel it "
        "(default: skip; wait with --missed all)"
    ),
]
Stamp = Annotated[Text, typer.Option(help="Input field that receives the scheduled time", metavar="FIELD")]
InstanceKey = Annotated[Text, typer.Option(help="Entity of its runs, with --deployment", metavar="KEY")]


@group.command(
    "set",
    epilog='Examples:  holdfast schedules set nightly --flow jobs.py:report --cron "0 2 * * mon-fri" '
    "--zone Europe/Berlin   ·   holdfast schedules set poll --flow jobs.py:poll --every 15m --jitter 1m"
    "   ·   holdfast schedules set launch --flow jobs.py:send --at 2027-01-01T09:00 --zone America/New_York",
)
def set_(
    name: Name,
    flow: FlowAddress,
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    zone: Zone = "UTC",
    anchor: Anchor = None,
    start: Annotated[Text, typer.Option(help="Do not start before this time", metavar="TIME")] = None,
    end: Annotated[Text, typer.Option(help="Do not start after this time", metavar="TIME")] = None,
    jitter: Jitter = None,
    missed: Missed = "last",
    grace: Grace = "1m",
    overlap: Overlap = None,
    input: Annotated[Text, typer.Option(help="JSON, @file, or - for stdin", metavar="JSON")] = None,  # noqa: A002
    stamp: Stamp = None,
    lane: Annotated[Text, typer.Option(help="Lane of its runs")] = None,
    priority: Annotated[int | None, typer.Option(help="Priority of its runs; higher runs first")] = None,
    thread: Annotated[Text, typer.Option(help="Thread of its runs")] = None,
    deployment: Annotated[Text, typer.Option(help="Deployment name", metavar="NAME")] = None,
    instance_key: InstanceKey = None,
    mode: Annotated[
        Text, typer.Option(help="When steps become durable", metavar="barrier|strict|exit")
    ] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Create or change a schedule. Unchanged times keep the next start."""
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
    """List schedules with their next start and problems."""
    return run_async(list_schedules(tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules show nightly")
def show(name: Name, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Show a schedule with all its settings."""
    return run_async(show_schedule(name, tenant, store=store, json=json))


@group.command("next", epilog="Example:  holdfast schedules next nightly --count 10")
def next_(
    name: Name,
    count: Annotated[int, typer.Option(help="Number of times to print", min=1, max=1000)] = 5,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Print the next starts, in the schedule's time zone."""
    return run_async(next_instants(name, count, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules history nightly --json")
def history(name: Name, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """List the last hundred starts with their outcomes, newest first."""
    return run_async(show_history(name, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules fill nightly --from 2026-12-01 --to 2026-12-24T23:59")
def fill(
    name: Name,
    first: Annotated[str, typer.Option("--from", help="Start of the range", metavar="TIME")],
    last: Annotated[
        str, typer.Option("--to", help="End of the range, inclusive; in the past", metavar="TIME")
    ],
    one_by_one: Annotated[
        bool, typer.Option("--one-by-one", help="Start each run when the one before it has ended")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the starts of the range")] = False,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Start the missing runs of past scheduled times in a range."""
    how = {"one_by_one": one_by_one, "dry_run": dry_run, "by": by, "tenant": tenant}
    return run_async(fill_schedule(name, first, last, how, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules pause nightly --reason stocktaking")
def pause(
    name: Name,
    reason: Annotated[str, typer.Option(help="Reason")] = "",
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Pause a schedule. Runs it has started continue."""
    return run_async(pause_schedule(name, reason, by, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules resume nightly")
def resume(
    name: Name, by: By = "user:local", tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Resume a schedule from its next start. Starts during the pause are skipped."""
    return run_async(resume_schedule(name, by, tenant, store=store, json=json))


@group.command(epilog="""Example:  holdfast schedules trigger nightly --input '{"day": "2026-12-24"}'""")
def trigger(
    name: Name,
    input: Annotated[  # noqa: A002
        Text, typer.Option(help="Input in place of the schedule's: JSON, @file or -", metavar="JSON")
    ] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Start one run now, even while paused, and print its id."""
    given = read_json(input, "--input")
    return run_async(trigger_schedule(name, given, by, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast schedules delete nightly")
def delete(name: Name, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Delete a schedule. Runs it has started continue."""
    return run_async(delete_schedule(name, tenant, store=store, json=json))


async def set_schedule(
    name: str, spec: str, plan: dict[str, Any], by: str, tenant: str, *, store: str | None, json: bool
) -> Exit:
    from holdfast.app.flow import Flow
    from holdfast.app.loader import address_in, is_file, load_flow

    flow = load_flow(spec) if is_file(spec) or ":" in spec or "." in spec else spec
    async with open_store_for_command(store, must_exist=isinstance(flow, str)) as hf:
        if isinstance(flow, str):
            await _require_known(hf, flow)
        schedules = await hf.schedules()
        made = await schedules.put(name, flow, tenant=tenant, by=by, **plan)
        ahead = await schedules.next(name, 3, tenant=tenant)
    if isinstance(flow, Flow):
        remember_source(store, flow.program().version, address_in(spec, flow))
    if json:
        print_json({**schedule_json(made), "upcoming": [iso(at) for at in ahead]})
        return Exit.ok
    print_line(f"Schedule {made.name} starts {made.flow} {when_text(made.plan)}.")
    if made.paused:
        print_note(f"It is paused. Resume it: holdfast schedules resume {name}")
    for at in ahead:
        print_line(f"  {moment_text(at, made.plan)}")
    if isinstance(flow, str):
        print_note("The input was not checked against the flow: name its file for that (--flow FILE:NAME).")
    return Exit.ok


async def _require_known(hf: Holdfast, flow: str) -> None:
    known = sorted({row.name for row in await (await hf.open()).flows()})
    if flow not in known:
        raise FlowNotFoundError(
            f"this store has no flow {flow!r}.",
            hint=f"Name its file: --flow path/to/file.py:{flow}."
            + (f" Known here: {', '.join(known[:10])}." if known else ""),
        )


async def list_schedules(tenant: str | None, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.schedules()).list(tenant=tenant)
        now = (await hf.open()).now()
    if json:
        print_list([schedule_json(each) for each in found])
    elif not found:
        print_line("No schedules.")
        print_note(
            'Create one: holdfast schedules set nightly --flow FILE --cron "0 2 * * *" --zone Europe/Berlin'
        )
    else:
        tenants = len({each.tenant for each in found}) > 1
        heads = ("schedule", *(("tenant",) if tenants else ()), "flow", "when", "next", "last run", "trouble")
        print_table(heads, [schedule_cells(each, now, tenants=tenants) for each in found])
    return Exit.ok


async def show_schedule(name: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        schedules = await hf.schedules()
        found = await schedules.get(name, tenant=tenant)
        ahead = [] if found.paused else await schedules.next(name, 5, tenant=tenant)
        now = (await hf.open()).now()
    if json:
        print_json({**schedule_json(found), "upcoming": [iso(at) for at in ahead]})
        return Exit.ok
    print_fields(schedule_fields(found, now))
    for at in ahead[1:]:
        print_line(f"  then {moment_text(at, found.plan)}")
    return Exit.ok


async def next_instants(name: str, count: int, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        schedules = await hf.schedules()
        found = await schedules.get(name, tenant=tenant)
        ahead = await schedules.next(name, count, tenant=tenant)
    if json:
        print_list([iso(at) for at in ahead])
        return Exit.ok
    for at in ahead:
        print_line(moment_text(at, found.plan))
    if found.paused:
        print_note("It is paused: it does not start until it is resumed.")
    elif not ahead:
        print_line("Never again.")
    return Exit.ok


async def show_history(name: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        schedules = await hf.schedules()
        plan = (await schedules.get(name, tenant=tenant)).plan
        found = await schedules.history(name, tenant=tenant)
    if json:
        print_list([firing_json(each) for each in found])
    elif not found:
        print_line(f"Schedule {name} has not fired.")
    else:
        heads = ("start", "outcome", "late", "run", "reason")
        print_table(heads, [firing_cells(each, plan) for each in found])
    return Exit.ok


async def fill_schedule(
    name: str, first: str, last: str, how: dict[str, Any], *, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        schedules = await hf.schedules()
        plan = (await schedules.get(name, tenant=how["tenant"])).plan
        found = await schedules.fill(name, first, last, **how)
    if json:
        print_list([iso(at) for at in found])
        return Exit.ok
    for at in found:
        print_line(moment_text(at, plan))
    if how["dry_run"]:
        print_note(f"{len(found)} starts. Nothing was started.")
    else:
        print_note(f"{len(found)} starts: workers that serve the flow start those that have no run yet.")
    return Exit.ok


async def pause_schedule(
    name: str, reason: str, by: str, tenant: str, *, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        made = await (await hf.schedules()).pause(name, reason=reason, by=by, tenant=tenant)
    return _print_schedule(made, f"Schedule {name} is paused. Runs it has started continue.", json=json)


async def resume_schedule(name: str, by: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        made = await (await hf.schedules()).resume(name, by=by, tenant=tenant)
        now = (await hf.open()).now()
    return _print_schedule(made, f"Schedule {name} is resumed: next {next_text(made, now)}.", json=json)


async def trigger_schedule(
    name: str, given: Any, by: str, tenant: str, *, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        run = await (await hf.schedules()).trigger(name, input=given, by=by, tenant=tenant)
    if json:
        print_json({"schedule": name, "run": run})
    else:
        print_line(f"Run {run} is started by the next worker that serves the flow.")
    return Exit.ok


async def delete_schedule(name: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        promised = await (await hf.schedules()).delete(name, tenant=tenant)
    if json:
        print_json({"schedule": name, "deleted": True, "not_started": promised})
    else:
        print_line(f"Schedule {name} is deleted. Runs it has started continue.")
        if promised:
            text = "Triggered runs that no worker has started yet, and that will not start"
            print_note(f"{text}: {', '.join(promised)}.")
    return Exit.ok


def _print_schedule(made: Schedule, text: str, *, json: bool) -> Exit:
    if json:
        print_json(schedule_json(made))
    else:
        print_line(text)
    return Exit.ok
