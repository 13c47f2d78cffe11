"""`deployments`: made, listed, shown, delegated and taken back."""

from __future__ import annotations

from typing import Any

from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.screen import print_fields, print_json, print_line, print_note, print_table
from holdfast.types.deployment import Deployment
from holdfast.types.duration import parse_duration
from holdfast.types.human_time import clock_time
from holdfast.types.skill import SkillPin


async def create_deployment(
    name: str, flow: str, given: dict[str, Any], *, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=False) as hf:
        made = await hf.deploy(name, flow, **given)
    return _print_deployment(
        made, json=json, said=f"Deployment {made.name} of flow {made.flow} is {made.id}."
    )


async def list_deployments(tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        deployments = await hf.deployments()
        found = await deployments.list(tenant=tenant)
        now = deployments.store.now()
    if json:
        print_json(found)
    elif not found:
        print_line("No deployments.")
        print_note("Make one: holdfast deployments create NAME --flow FLOW")
    else:
        print_table(
            ("deployment", "flow", "mode", "skills", "on behalf of"), [_line(each, now) for each in found]
        )
    return Exit.ok


def _line(each: Deployment, now: int) -> tuple[str, ...]:
    return each.name, each.flow, each.mode, ", ".join(map(str, each.skills)), _delegation_text(each, now)


def _delegation_text(each: Deployment, now: int) -> str:
    held = each.delegation
    if held is None:
        return ""
    if held.revoked:
        return f"{held.to} (revoked)"
    until = "" if held.until is None else f" until {clock_time(held.until)}"
    return f"{held.to}{until}" if held.is_active(now) else f"{held.to} (not now{until})"


async def show_deployment(name: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        deployments = await hf.deployments()
        found = await deployments.get(name, tenant=tenant)
        pins = await deployments.skills.pin(found.skills, tenant=tenant)
        now = deployments.store.now()
    if json:
        print_json({"deployment": found, "pins": pins})
        return Exit.ok
    print_fields([(what, value) for what, value in _facts(found, pins, now) if value])
    return Exit.ok


def _facts(each: Deployment, pins: list[SkillPin], now: int) -> list[tuple[str, str]]:
    usual = each.defaults
    chosen = dict(zip((str(bound) for bound in each.skills), pins, strict=True))
    return [
        ("deployment", each.name),
        ("id", each.id),
        ("flow", f"{each.flow} {each.version}".strip()),
        ("mode", str(each.mode)),
        ("on behalf of", _delegation_text(each, now)),
        ("skills", ", ".join(f"{bound} (now {pin.version})" for bound, pin in chosen.items())),
        ("assignee", usual.assignee or ""),
        ("priority", usual.priority or ""),
        ("calendar", usual.calendar or ""),
        ("timeout", " then ".join(part for part in (usual.timeout, usual.on_timeout) if part)),
        ("reminder", usual.reminder or ""),
        ("policies", ", ".join(each.policies)),
        ("created", f"{clock_time(each.created_at)} by {each.created_by}"),
    ]


async def delegate_deployment(
    name: str, to: str, until: str | None, by: str, tenant: str, *, store: str | None, json: bool
) -> Exit:
    lasts = None if until is None else parse_duration(until)
    async with open_store_for_command(store, must_exist=True) as hf:
        made = await (await hf.deployments()).delegate(name, to, until=lasts, by=by, tenant=tenant)
    assert made.delegation is not None
    return _print_deployment(made, json=json, said=f"{made.name} works on behalf of {made.delegation.to}.")


async def revoke_deployment(name: str, by: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        made = await (await hf.deployments()).revoke(name, by=by, tenant=tenant)
    return _print_deployment(made, json=json, said=f"{made.name} works on nobody's behalf now.")


def _print_deployment(made: Deployment, *, json: bool, said: str) -> Exit:
    if json:
        print_json(made)
    else:
        print_line(said)
    return Exit.ok
