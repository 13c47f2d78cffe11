"""`links`: made for one person, revoked, and their keys."""

from __future__ import annotations

from holdfast.cli.commands.hold_actor import find_in_any_tenant
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.results import clock_time
from holdfast.cli.output.screen import print_json, print_line, print_note, print_table
from holdfast.errors import InputError
from holdfast.holds.actions import conflicts
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant, key_text, new_key, strength_of
from holdfast.holds.permissions.assignees import parse_assignee
from holdfast.types.clock import iso
from holdfast.types.duration import parse_duration
from holdfast.types.terms import operator


async def make_link(hold: str, to: str, *, view: bool, lasting: str, store: str | None, json: bool) -> Exit:
    whom = parse_assignee(to)
    if whom.type != "user":
        raise InputError(f"{to!r} is no one person.", hint="Write user:NAME.")
    length = int(parse_duration(lasting).total_seconds())
    async with open_store_for_command(store, must_exist=True) as hf:
        row = await find_in_any_tenant(hf, hold)
        conflicts.require_open(row)
        service = await hf.service()
        grant = LinkGrant(to=str(whom), purpose="view" if view else "decide", lifetime=length)
        token = await Links(service.people.office).make(row, grant)
        deliverer = service.runtime.deliverer
        base = deliverer.channels.settings.base_url.rstrip("/") if deliverer is not None else ""
    if json:
        print_json({"token": token, "url": f"{base}/l/{token}" if base else None})
    else:
        print_line(f"{base}/l/{token}" if base else token)
        if strength_of(row) == "login_required" and not view:
            print_note("It shows the question; to decide, this person has to sign in.")
    return Exit.ok


async def revoke_links(hold: str, by: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        row = await find_in_any_tenant(hf, hold)
        office = (await hf.service()).people.office
        after = await Links(office).revoke(operator(by, tenant=row.tenant, channel="cli"), row.id)
    if json:
        print_json({"hold": after.id, "epoch": after.epoch})
    else:
        print_line(f"Every link to hold {after.id} is void.")
    return Exit.ok


async def keys_of_links(
    tenant: str, *, rotate: bool, drop: str | None, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        keys = LinkKeys(await hf.open())
        if rotate:
            await keys.rotate(tenant)
        if drop is not None:
            await keys.drop(tenant, drop)
        found = await keys.kept(tenant)
        fixed = keys.are_fixed
    if json:
        print_json([{"key": key.id, "made_at": iso(made)} for key, made in found])
    elif not found:
        print_line("No key is in the store; the first link makes one.")
    else:
        print_table(
            ("key", "made", ""),
            [_cells(key.id, made, n == 0 and not fixed) for n, (key, made) in enumerate(found)],
        )
    if fixed:
        print_note("HOLDFAST_LINK_KEYS is set: links are signed and read with its keys only.")
    return Exit.ok


def print_key(*, json: bool) -> Exit:
    made = key_text(new_key())
    if json:
        print_json({"key": made})
    else:
        print_line(made)
    return Exit.ok


def _cells(name: str, made: int, signs: bool) -> tuple[str, ...]:
    return (name, clock_time(made), "signs" if signs else "")
