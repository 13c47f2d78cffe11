"""`holdfast calendars`: business calendars, by which the deadlines of holds are counted."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.errors import InputError
from holdfast.types.clock import SystemClock, iso, require_moment, to_datetime
from holdfast.types.duration import parse_length
from holdfast.types.ids import DEFAULT_TENANT

if TYPE_CHECKING:
    from holdfast.holds.timing.calendars import Calendar

calendars = typer.Typer(
    no_args_is_help=True,
    help="Set, show and check business calendars.\n\n"
    "Durations such as `4bh` and `2bd` count business hours and days.",
    epilog="Examples:  holdfast calendars set default hours.toml   ·   holdfast calendars show default",
)
app.add_typer(calendars, name="calendars")
Name = Annotated[str, typer.Argument(help="Calendar name; holds that name no calendar use `default`")]
File = Annotated[str, typer.Argument(help="Calendar rules in TOML or JSON; - for stdin", metavar="FILE")]
Whose = Annotated[Text, typer.Option("--tenant", help="Tenant")]
Days = Annotated[int, typer.Option("--days", help="Number of days to show", min=1, max=366)]


@calendars.command("list", epilog="Example:  holdfast calendars list")
def list_(tenant: Whose = None, store: Store = None, json: Json = False) -> int:
    """List calendars."""
    return run_async(list_calendars(tenant, store=store, json=json))


@calendars.command(epilog="Example:  holdfast calendars show default --days 14")
def show(name: Name, days: Days = 7, tenant: Whose = None, store: Store = None, json: Json = False) -> int:
    """Show a calendar's rules and its hours in the coming days."""
    return run_async(show_calendar(name, days, tenant, store=store, json=json))


@calendars.command("set", epilog="Example:  holdfast calendars set default hours.toml")
def set_(
    name: Name,
    file: File,
    by: By = "user:local",
    tenant: Whose = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Set a calendar. Deadlines of open holds that use it are recalculated."""
    return run_async(set_calendar(name, file, by, tenant, store=store, json=json))


@calendars.command(
    epilog="Examples:  holdfast calendars check hours.toml"
    "   ·   holdfast calendars check hours.toml --add 4bh --from 2026-01-09T15:00+01:00"
)
def check(
    file: File,
    add: Annotated[
        Text,
        typer.Option(
            "--add", help="Add this business time and print the result: 30bm, 4bh, 2bd", metavar="DURATION"
        ),
    ] = None,
    start: Annotated[
        Text, typer.Option("--from", help="Start time in ISO 8601 (default: now)", metavar="TIME")
    ] = None,
    json: Json = False,
) -> int:
    """Check a calendar's rules without storing them."""
    return check_calendar(file, add, start, json=json)


async def list_calendars(tenant: str | None, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.timing.stored_calendars import Calendars

    async with open_store_for_command(store, must_exist=True) as hf:
        found = await Calendars(await hf.open()).all(tenant or DEFAULT_TENANT)
    rows = [_summary(calendar, SystemClock().now()) for calendar in found]
    if json:
        print_list(rows)
    elif not rows:
        print_line("No calendars. Create one: holdfast calendars set default FILE")
    else:
        print_table(tuple(rows[0]), [[str(value) for value in row.values()] for row in rows])
    return Exit.ok


def _summary(calendar: Calendar, now: int) -> dict[str, Any]:
    weekly = sum(end - begin for spans in calendar.week for begin, end in spans)
    return {
        "name": calendar.name,
        "zone": calendar.zone,
        "hours_a_week": weekly / 60,
        "now": "open" if calendar.is_open(now) else "closed",
    }


async def show_calendar(name: str, days: int, tenant: str | None, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.timing.parse_calendar import calendar_from
    from holdfast.holds.timing.stored_calendars import Calendars

    async with open_store_for_command(store, must_exist=True) as hf:
        rules = await Calendars(await hf.open()).rules(tenant or DEFAULT_TENANT, name)
    calendar, now = calendar_from(name, rules), SystemClock().now()
    ahead = _days_ahead(calendar, now, days)
    if json:
        opened = {day: [{"from": iso(a), "to": iso(b)} for a, b in spans] for day, spans in ahead}
        print_json({**_summary(calendar, now), "rules": rules, "days": opened})
        return Exit.ok
    print_fields([(key.replace("_", " "), str(value)) for key, value in _summary(calendar, now).items()])
    print_line()
    print_table(("day", "open"), [(day, _hours(calendar, spans)) for day, spans in ahead])
    return Exit.ok


def _days_ahead(calendar: Calendar, now: int, days: int) -> list[tuple[str, list[tuple[int, int]]]]:
    from holdfast.holds.timing.calendars import zone_of

    today = to_datetime(now).astimezone(zone_of(calendar.zone)).date()
    dates = [today + timedelta(days=ahead) for ahead in range(days)]
    return [(f"{date:%a} {date}", calendar.open_on(date)) for date in dates]


def _hours(calendar: Calendar, spans: list[tuple[int, int]]) -> str:
    from holdfast.holds.timing.calendars import zone_of

    zone = zone_of(calendar.zone)
    shown = [
        f"{to_datetime(a).astimezone(zone):%H:%M}-{to_datetime(b).astimezone(zone):%H:%M}" for a, b in spans
    ]
    return ", ".join(shown) or "closed"


async def set_calendar(
    name: str, file: str, by: str, tenant: str | None, *, store: str | None, json: bool
) -> Exit:
    from holdfast.holds.timing.parse_calendar import read_rules
    from holdfast.holds.timing.reschedule import change_calendar

    rules = read_rules(_read(file), name=name)
    async with open_store_for_command(store, must_exist=False) as hf:
        calendar, moved = await change_calendar(await hf.open(), tenant or DEFAULT_TENANT, name, rules, by=by)
    if json:
        print_json({"name": name, "zone": calendar.zone, "moved": [row.id for row in moved]})
        return Exit.ok
    print_line(f"Calendar {name} is set, in {calendar.zone}.")
    if moved:
        print_line(f"{len(moved):,} open holds have a new deadline.")
    return Exit.ok


def check_calendar(file: str, length: str | None, start: str | None, *, json: bool) -> Exit:
    from holdfast.holds.timing.calendars import zone_of
    from holdfast.holds.timing.deadlines import after
    from holdfast.holds.timing.parse_calendar import calendar_from, read_rules

    name = Path(file).stem if file != "-" else "stdin"
    calendar = calendar_from(name, read_rules(_read(file), name=name))
    begun = SystemClock().now() if start is None else _instant(start, calendar)
    end = None if length is None else after(begun, parse_length(length), calendar)
    if json:
        print_json(
            {**_summary(calendar, begun), "from": iso(begun), "until": None if end is None else iso(end)}
        )
    elif end is None:
        print_line(f"Valid: {calendar.zone}, {_summary(calendar, begun)['hours_a_week']:g} hours a week.")
    else:
        local = to_datetime(end).astimezone(zone_of(calendar.zone))
        print_line(f"{length} from {iso(begun)} is {iso(end)} ({local:%a %Y-%m-%d %H:%M} there).")
    return Exit.ok


def _instant(text: str, calendar: Calendar) -> int:
    """A time without an offset is local time of the calendar's zone."""
    from holdfast.holds.timing.calendars import zone_of

    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"--from {text!r} is not a time.", hint="Write it as 2026-01-09T15:00+01:00."
        ) from error
    return require_moment(found if found.tzinfo else found.replace(tzinfo=zone_of(calendar.zone)), "--from")


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
