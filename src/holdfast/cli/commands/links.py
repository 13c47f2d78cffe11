"""`holdfast links`: signed links to holds, and the keys that sign them."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, OfTenant, Store, Text, app, run_async
from holdfast.cli.hold_session import find_in_any_tenant
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError
from holdfast.types.clock import iso
from holdfast.types.duration import parse_duration
from holdfast.types.human_time import clock_time
from holdfast.types.terms import OPERATOR, operator

links = typer.Typer(
    no_args_is_help=True,
    help="Create and revoke signed links to holds.\n\nIt also manages the keys that sign them.",
    epilog="Example:  holdfast links create 3fa9c1d2-0000-4000-8000-000000000000 --to user:dana@example.com",
)
app.add_typer(links, name="links")
Hold = Annotated[str, typer.Argument(help="Hold id or a unique prefix of it", metavar="HOLD")]


@links.command(epilog="Example:  holdfast links create HOLD --to user:dana@example.com --for 2d")
def create(
    hold: Hold,
    to: Annotated[str, typer.Option(help="Person the link is for: user:NAME", metavar="WHO")],
    view: Annotated[bool, typer.Option("--view", help="Read-only link: it cannot decide")] = False,
    lasting: Annotated[str, typer.Option("--for", help="Lifetime of the link", metavar="DURATION")] = "7d",
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Create a link to a hold for one person. It expires with the hold at the latest."""
    return run_async(make_link(hold, to, view=view, lasting=lasting, by=by, store=store, json=json))


@links.command(epilog="Example:  holdfast links revoke HOLD")
def revoke(hold: Hold, by: By = "user:local", store: Store = None, json: Json = False) -> int:
    """Revoke all links of a hold."""
    return run_async(revoke_links(hold, by, store=store, json=json))


@links.command(
    epilog="Examples:  holdfast links keys   ·   holdfast links keys --rotate   ·   "
    "holdfast links keys --delete 1f2e3d4c"
)
def keys(
    rotate: Annotated[bool, typer.Option("--rotate", help="Create a new key; it signs from now on")] = False,
    delete: Annotated[
        Text, typer.Option(help="Delete this key; its links become invalid", metavar="KEY")
    ] = None,
    tenant: OfTenant = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """List the keys that sign links, newest first. Secrets are not shown."""
    return run_async(keys_of_links(tenant, rotate=rotate, delete=delete, store=store, json=json))


@links.command("new-key", epilog="Example:  holdfast links new-key")
def new_key(json: Json = False) -> int:
    """Create a key for HOLDFAST_LINK_KEYS (keys outside the store)."""
    return print_key(json=json)


async def make_link(
    hold: str, to: str, *, view: bool, lasting: str, by: str, store: str | None, json: bool
) -> Exit:
    from holdfast.holds.actions import conflicts
    from holdfast.holds.links.open import Links
    from holdfast.holds.links.tokens import LinkGrant, strength_of
    from holdfast.holds.permissions.assignees import parse_assignee

    whom = parse_assignee(to)
    if whom.type != "user":
        raise InputError(f"{to!r} is not a person.", hint="Write user:NAME.")
    length = int(parse_duration(lasting).total_seconds())
    async with open_store_for_command(store, must_exist=True) as hf:
        row = await find_in_any_tenant(hf, hold)
        conflicts.require_open(row)
        service = await hf.service()
        grant = LinkGrant(to=str(whom), purpose="view" if view else "decide", lifetime=length, by=(OPERATOR,))
        token = await Links(service.people.ctx).make(row, grant, by=by)
        deliverer = service.runtime.deliverer
        base = deliverer.channels.settings.base_url.rstrip("/") if deliverer is not None else ""
    if json:
        print_json({"token": token, "url": f"{base}/l/{token}" if base else None})
    else:
        print_line(f"{base}/l/{token}" if base else token)
        if strength_of(row) == "login_required" and not view:
            print_note("The link shows the hold; to decide, the person has to sign in.")
    return Exit.ok


async def revoke_links(hold: str, by: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.links.open import Links

    async with open_store_for_command(store, must_exist=True) as hf:
        row = await find_in_any_tenant(hf, hold)
        ctx = (await hf.service()).people.ctx
        after = await Links(ctx).revoke(operator(by, tenant=row.tenant, channel="cli"), row.id)
    if json:
        print_json({"hold": after.id, "epoch": after.epoch})
    else:
        print_line(f"All links to hold {after.id} are revoked.")
    return Exit.ok


async def keys_of_links(
    tenant: str, *, rotate: bool, delete: str | None, store: str | None, json: bool
) -> Exit:
    from holdfast.holds.links.keys import LinkKeys

    async with open_store_for_command(store, must_exist=True) as hf:
        keys = LinkKeys(await hf.open())
        if rotate:
            await keys.rotate(tenant)
        if delete is not None:
            await keys.delete(tenant, delete)
        found = await keys.kept(tenant)
        fixed = keys.are_fixed
    if json:
        print_list([{"key": key.id, "made_at": iso(made)} for key, made in found])
    elif not found:
        print_line("No keys in the store; the first link creates one.")
    else:
        print_table(
            ("key", "made", ""),
            [_cells(key.id, made, n == 0 and not fixed) for n, (key, made) in enumerate(found)],
        )
    if fixed:
        print_note("HOLDFAST_LINK_KEYS is set: links are signed and read with its keys only.")
    return Exit.ok


def print_key(*, json: bool) -> Exit:
    from holdfast.holds.links.tokens import key_text, new_key

    made = key_text(new_key())
    if json:
        print_json({"key": made})
    else:
        print_line(made)
    return Exit.ok


def _cells(name: str, made: int, signs: bool) -> tuple[str, ...]:
    return (name, clock_time(made), "signs" if signs else "")
