"""`holdfast directory`: people, groups, roles and absences."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.directory import (
    memberships_of,
    memberships_text,
    print_empty,
    print_entry,
    show_circle,
    show_person,
    state_text,
)
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError, NotFoundError
from holdfast.types.clock import micros, require_moment
from holdfast.types.duration import DurationError, parse_duration

if TYPE_CHECKING:
    from holdfast.holds.directory.base import Circle, Person
    from holdfast.store.protocols import Store as StoreProtocol

group = typer.Typer(
    no_args_is_help=True,
    help="Manage people, groups, roles and absences.\n\nThe directory says who may decide which holds.",
    epilog="Examples:  holdfast directory add-person dana --email dana@acme   ·   "
    "holdfast directory add-group finance dana sam   ·   "
    "holdfast directory away dana --substitute sam --until 14d",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="directory")
Who = Annotated[str, typer.Argument(help="Person, by id or address", metavar="WHO")]
CircleName = Annotated[str, typer.Argument(help="group:KEY or role:KEY", metavar="GROUP|ROLE")]
Members = Annotated[list[str] | None, typer.Argument(help="People, by id or address", metavar="WHO")]
Whose = Annotated[str, typer.Option("--tenant", help="Tenant")]


@group.command("list", epilog="Examples:  holdfast directory list   ·   holdfast directory list --json")
def list_(tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """List people with their groups, roles and absences."""
    return run_async(list_directory(tenant, store=store, json=json))


@group.command(epilog="Examples:  holdfast directory show dana@acme   ·   holdfast directory show role:cfo")
def show(
    which: Annotated[str, typer.Argument(help="Person, group:KEY or role:KEY", metavar="WHO|GROUP|ROLE")],
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Show a person with groups and roles, or a group or role."""
    return run_async(show_entry(which, tenant, store=store, json=json))


@group.command(
    "add-person",
    epilog="Examples:  holdfast directory add-person dana --email dana@acme --name 'Dana D.'   ·   "
    "holdfast directory add-person dana --email dana@acme --inactive",
)
def add_person(
    person: Annotated[str, typer.Argument(help="Permanent id: dana, 42, dana@acme", metavar="ID")],
    email: Annotated[str, typer.Option(help="Mail address, also accepted as a name")] = "",
    name: Annotated[str, typer.Option(help="Display name")] = "",
    inactive: Annotated[bool, typer.Option("--inactive", help="Disable the person")] = False,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Add a person, or change address, name or state."""
    from holdfast.holds.directory.base import Person

    given = Person(id=person, email=email, name=name, active=not inactive)
    return run_async(save_person(given, tenant, store=store, json=json))


@group.command("delete-person", epilog="Example:  holdfast directory delete-person dana")
def delete_person(who: Who, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Delete a person, also from all groups and roles."""
    return run_async(remove_person(who, tenant, store=store, json=json))


@group.command("add-group", epilog="Example:  holdfast directory add-group finance dana sam@acme")
def add_group(
    key: Annotated[str, typer.Argument(help="Key of the group, as in group:KEY", metavar="KEY")],
    members: Members = None,
    name: Annotated[str, typer.Option(help="Display name")] = "",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Set a group to exactly these members."""
    return run_async(add_circle("group", key, members or (), name, tenant, store=store, json=json))


@group.command("add-role", epilog="Example:  holdfast directory add-role cfo kim")
def add_role(
    key: Annotated[str, typer.Argument(help="Key of the role, as in role:KEY", metavar="KEY")],
    members: Members = None,
    name: Annotated[str, typer.Option(help="Display name")] = "",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Set a role to exactly these people."""
    return run_async(add_circle("role", key, members or (), name, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast directory join group:finance dana")
def join(
    circle: CircleName, who: Who, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Add a person to a group or role."""
    return run_async(join_circle(circle, who, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast directory leave role:cfo kim")
def leave(
    circle: CircleName, who: Who, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Remove a person from a group or role."""
    return run_async(leave_circle(circle, who, tenant, store=store, json=json))


@group.command("delete-group", epilog="Example:  holdfast directory delete-group group:finance")
def delete_group(
    circle: CircleName, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Delete a group or role. Its open holds go to admins."""
    return run_async(delete_circle(circle, tenant, store=store, json=json))


@group.command(
    epilog="Examples:  holdfast directory away dana --substitute sam --until 14d   ·   "
    "holdfast directory away dana --substitute sam --from 2026-12-24T00:00:00Z --until 2027-01-02T00:00:00Z"
)
def away(
    who: Who,
    substitute: Annotated[
        str, typer.Option("--substitute", help="Substitute, by id or address", metavar="WHO")
    ],
    since: Annotated[
        Text,
        typer.Option(
            "--from", help="Start: a duration from now (2d) or a time (default: now)", metavar="WHEN"
        ),
    ] = None,
    until: Annotated[
        Text, typer.Option("--until", help="End: a duration from now (14d) or a time", metavar="WHEN")
    ] = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Set an absence. The substitute may decide the person's holds."""
    return run_async(set_absence(who, substitute, since, until, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast directory back dana")
def back(who: Who, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """End an absence."""
    return run_async(clear_absence(who, tenant, store=store, json=json))


@asynccontextmanager
async def _open_store(store: str | None, *, must_exist: bool = True) -> AsyncGenerator[StoreProtocol]:
    async with open_store_for_command(store, must_exist=must_exist) as hf:
        yield await hf.open()


async def list_directory(tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.directory.stored import TableDirectory

    async with _open_store(store) as opened:
        found = TableDirectory(opened)
        people, groups, roles = (
            await found.people(tenant),
            await found.groups(tenant),
            await found.roles(tenant),
        )
        now = opened.now()
    if json:
        print_json({"people": people, "groups": groups, "roles": roles})
    elif not people:
        print_line("The directory is empty.")
        print_note("Add a person: holdfast directory add-person dana --email dana@acme")
    else:
        belongs = {each.id: memberships_of(each.id, groups, roles) for each in people}
        rows = [
            (each.id, each.email, memberships_text(belongs[each.id]), state_text(each, now))
            for each in people
        ]
        print_table(("person", "address", "belongs to", ""), rows)
        print_empty(groups, roles)
    return Exit.ok


async def show_entry(which: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.directory.stored import TableDirectory
    from holdfast.holds.permissions.assignees import parse_assignee

    meant = parse_assignee(which)
    async with _open_store(store) as opened:
        found = TableDirectory(opened)
        if meant.type in ("group", "role"):
            circle = await (found.group if meant.type == "group" else found.role)(tenant, meant.value)
            return show_circle(circle, str(meant), json=json)
        person = await found.person(tenant, meant.value)
        member = await found.memberships(tenant, meant.value)
        instead = await found.stands_in_for(tenant, meant.value, opened.now())
        return show_person(person, member, instead, which, opened.now(), json=json)


async def save_person(person: Person, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.directory.admin import Registrar

    async with _open_store(store, must_exist=False) as opened:
        kept = await Registrar(opened).put_person(tenant, person)
    print_entry(kept, f"{kept.id} is in the directory.", json=json)
    return Exit.ok


async def remove_person(who: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.directory.admin import Registrar

    async with _open_store(store) as opened:
        if not await Registrar(opened).delete_person(tenant, who):
            raise NotFoundError(
                f"{who!r} is not in the directory.", hint="`holdfast directory list` lists all."
            )
    print_entry({"deleted": who}, f"{who} is removed from the directory.", json=json)
    return Exit.ok


async def add_circle(
    kind: str, key: str, members: Sequence[str], name: str, tenant: str, *, store: str | None, json: bool
) -> Exit:
    from holdfast.holds.directory.admin import Registrar

    async with _open_store(store, must_exist=False) as opened:
        registrar = Registrar(opened)
        put = registrar.put_group if kind == "group" else registrar.put_role
        circle = await put(tenant, key, members, name=name)
    return _print_circle(f"{kind}:{circle.key}", circle, json=json)


async def join_circle(circle: str, who: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.directory.admin import Registrar

    async with _open_store(store) as opened:
        changed = await Registrar(opened).join(tenant, circle, who)
    return _print_circle(circle, changed, json=json)


async def leave_circle(circle: str, who: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.directory.admin import Registrar

    async with _open_store(store) as opened:
        changed = await Registrar(opened).leave(tenant, circle, who)
    return _print_circle(circle, changed, json=json)


async def delete_circle(circle: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.directory.admin import Registrar

    async with _open_store(store) as opened:
        if not await Registrar(opened).delete_circle(tenant, circle):
            raise NotFoundError(
                f"{circle!r} is not in the directory.", hint="`holdfast directory list` lists all."
            )
    print_entry({"deleted": circle}, f"{circle} is removed from the directory.", json=json)
    return Exit.ok


async def set_absence(
    who: str,
    substitute: str,
    since: str | None,
    until: str | None,
    tenant: str,
    *,
    store: str | None,
    json: bool,
) -> Exit:
    from holdfast.holds.directory.absence import Away
    from holdfast.holds.directory.admin import Registrar
    from holdfast.holds.directory.stored import TableDirectory

    async with _open_store(store) as opened:
        now = opened.now()
        absent = Away(substitute=substitute, since=_instant(since, now), until=_instant(until, now))
        await Registrar(opened).put_away(tenant, who, absent)
        person = await TableDirectory(opened).person(tenant, who)
    assert person is not None
    print_entry(person, f"{person.id} is {state_text(person, now)}.", json=json)
    return Exit.ok


async def clear_absence(who: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.directory.admin import Registrar

    async with _open_store(store) as opened:
        was_away = await Registrar(opened).back(tenant, who)
    print_entry({"was_away": was_away}, f"{who} {'is back' if was_away else 'was not away'}.", json=json)
    return Exit.ok


def _instant(text: str | None, now: int) -> int | None:
    """A duration from now, or a time with its zone."""
    if text is None:
        return None
    try:
        return now + micros(parse_duration(text))
    except DurationError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InputError(f"{text!r} is not a time.", hint="Write 14d, or 2026-12-24T00:00:00Z with its zone.")
    return require_moment(moment, "the time")


def _print_circle(which: str, circle: Circle, *, json: bool) -> Exit:
    print_entry(circle, f"Members of {which}: {', '.join(circle.members) or 'none'}.", json=json)
    return Exit.ok
