"""`directory`: who works here, as the store keeps it."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="People, groups and roles that the store keeps: who may decide what waits for them.",
    epilog="Examples:  holdfast directory add-person dana --email dana@acme   ·   "
    "holdfast directory add-group finance dana sam   ·   "
    "holdfast directory away dana --substitute sam --until 14d",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="directory", short_help="People, groups and roles; who is away, and who stands in.")

Who = Annotated[str, typer.Argument(help="A person, by id or address", metavar="WHO")]
CircleName = Annotated[str, typer.Argument(help="group:KEY or role:KEY", metavar="GROUP|ROLE")]
Members = Annotated[list[str] | None, typer.Argument(help="People, by id or address", metavar="WHO")]
Whose = Annotated[str, typer.Option("--tenant", help="Whose directory")]


@group.command("list", epilog="Examples:  holdfast directory list   ·   holdfast directory list --json")
def list_(tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Everybody, with what they belong to and who is away."""
    from holdfast.cli.commands.directory__directing import list_directory

    return run_async(list_directory(tenant, store=store, json=json))


@group.command(epilog="Examples:  holdfast directory show dana@acme   ·   holdfast directory show role:cfo")
def show(
    which: Annotated[str, typer.Argument(help="A person, group:KEY or role:KEY", metavar="WHO|GROUP|ROLE")],
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """One person with all they belong to, or one group or role with its members."""
    from holdfast.cli.commands.directory__directing import show_entry

    return run_async(show_entry(which, tenant, store=store, json=json))


@group.command(
    "add-person",
    epilog="Examples:  holdfast directory add-person dana --email dana@acme --name 'Dana D.'   ·   "
    "holdfast directory add-person dana --email dana@acme --inactive",
)
def add_person(
    person: Annotated[str, typer.Argument(help="An id that stays: dana, 42, dana@acme", metavar="ID")],
    email: Annotated[str, typer.Option(help="Another name for them, and where mail goes")] = "",
    name: Annotated[str, typer.Option(help="As people call them")] = "",
    inactive: Annotated[bool, typer.Option("--inactive", help="They may do nothing")] = False,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Somebody new, or with another address, name or state."""
    from holdfast.cli.commands.directory__directing import save_person
    from holdfast.holds.directory.base import Person

    given = Person(id=person, email=email, name=name, active=not inactive)
    return run_async(save_person(given, tenant, store=store, json=json))


@group.command("drop-person", epilog="Example:  holdfast directory drop-person dana")
def drop_person(who: Who, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Somebody leaves: gone from every group and role, at once."""
    from holdfast.cli.commands.directory__directing import delete_person

    return run_async(delete_person(who, tenant, store=store, json=json))


@group.command("add-group", epilog="Example:  holdfast directory add-group finance dana sam@acme")
def add_group(
    key: Annotated[str, typer.Argument(help="As holds name it: group:KEY", metavar="KEY")],
    members: Members = None,
    name: Annotated[str, typer.Option(help="As people call it")] = "",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """A group with exactly these members."""
    from holdfast.cli.commands.directory__directing import add_circle

    return run_async(add_circle("group", key, members or (), name, tenant, store=store, json=json))


@group.command("add-role", epilog="Example:  holdfast directory add-role cfo kim")
def add_role(
    key: Annotated[str, typer.Argument(help="As holds name it: role:KEY", metavar="KEY")],
    members: Members = None,
    name: Annotated[str, typer.Option(help="As people call it")] = "",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """A role that exactly these people have."""
    from holdfast.cli.commands.directory__directing import add_circle

    return run_async(add_circle("role", key, members or (), name, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast directory join group:finance dana")
def join(
    circle: CircleName, who: Who, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Somebody joins a group or is given a role."""
    from holdfast.cli.commands.directory__directing import join_circle

    return run_async(join_circle(circle, who, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast directory leave role:cfo kim")
def leave(
    circle: CircleName, who: Who, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Somebody leaves a group or loses a role: what waits for it is not theirs any more."""
    from holdfast.cli.commands.directory__directing import leave_circle

    return run_async(leave_circle(circle, who, tenant, store=store, json=json))


@group.command("drop-group", epilog="Example:  holdfast directory drop-group group:finance")
def drop_group(circle: CircleName, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """A group or a role goes: what waits for it is left to admins."""
    from holdfast.cli.commands.directory__directing import drop_circle

    return run_async(drop_circle(circle, tenant, store=store, json=json))


@group.command(
    epilog="Examples:  holdfast directory away dana --substitute sam --until 14d   ·   "
    "holdfast directory away dana --substitute sam --from 2026-12-24T00:00:00Z --until 2027-01-02T00:00:00Z"
)
def away(
    who: Who,
    substitute: Annotated[str, typer.Option("--substitute", help="Who acts in their place", metavar="WHO")],
    since: Annotated[
        Text, typer.Option("--from", help="In 2d, or from that time on; else now", metavar="WHEN")
    ] = None,
    until: Annotated[
        Text, typer.Option("--until", help="For 14d, or until that time", metavar="WHEN")
    ] = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Somebody is out of office; their substitute may decide what waits for them."""
    from holdfast.cli.commands.directory__directing import set_absence

    return run_async(set_absence(who, substitute, since, until, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast directory back dana")
def back(who: Who, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Somebody is there again."""
    from holdfast.cli.commands.directory__directing import clear_absence

    return run_async(clear_absence(who, tenant, store=store, json=json))
