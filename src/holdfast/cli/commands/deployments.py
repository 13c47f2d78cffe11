"""`holdfast deployments`: flows under a name, with skills, defaults and delegation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.types.deployment import Deployment
from holdfast.types.duration import parse_duration
from holdfast.types.human_time import clock_time
from holdfast.types.skill import SkillPin

group = typer.Typer(
    no_args_is_help=True,
    help="Create, list, show, delegate and revoke deployments.\n\n"
    "A deployment is a flow under a name, with its skills and the person on whose behalf it works.",
    epilog="Examples:  holdfast deployments create refunds --flow refund --skill refunds@^1   ·   "
    "holdfast deployments delegate refunds user:dana@acme --until 30d   ·   "
    "holdfast run refund.py --deployment refunds",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="deployments")
Name = Annotated[str, typer.Argument(help="Deployment name or id", metavar="NAME")]
Whose = Annotated[str, typer.Option("--tenant", help="Tenant")]


@group.command(
    epilog="Examples:  holdfast deployments create refunds --flow refund --skill refunds@^1   ·   "
    "holdfast deployments create cases --flow case --mode entity --assignee group:support --timeout 2d"
)
def create(
    name: Annotated[str, typer.Argument(help="Deployment name", metavar="NAME")],
    flow: Annotated[str, typer.Option("--flow", help="Flow name")],
    version: Annotated[str, typer.Option(help="Use only this version of the flow")] = "",
    mode: Annotated[
        str, typer.Option(help="entity: each run names an entity", metavar="plain|entity")
    ] = "plain",
    skill: Annotated[
        list[str] | None,
        typer.Option("--skill", help="Bind a skill: NAME@RANGE; may be repeated", metavar="SKILL"),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict-skills", help="Fail the node if a pinned skill's content was changed")
    ] = False,
    assignee: Annotated[Text, typer.Option(help="Default assignee of holds")] = None,
    priority: Annotated[
        Text, typer.Option(help="Default priority of holds", metavar="low|normal|high|critical")
    ] = None,
    calendar: Annotated[Text, typer.Option(help="Default calendar of holds")] = None,
    timeout: Annotated[Text, typer.Option(help="Default deadline of holds: 2d, 4bh")] = None,
    on_timeout: Annotated[
        Text,
        typer.Option(
            help="Default action at expiry: cancel, default_option, fail, escalate:WHO", metavar="ACTION"
        ),
    ] = None,
    reminder: Annotated[Text, typer.Option(help="Reminder interval: 4h")] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", help="Only this policy; may be repeated", metavar="NAME")
    ] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Create a deployment, or change its settings for later runs."""
    given = {
        "version": version, "mode": mode, "skills": skill or (), "by": by, "tenant": tenant,
        "on_changed_skill": "fail" if strict else "warn", "assignee": assignee, "priority": priority,
        "calendar": calendar, "timeout": timeout, "on_timeout": on_timeout, "reminder": reminder,
        "policies": policy or (),
    }  # fmt: skip
    return run_async(create_deployment(name, flow, given, store=store, json=json))


@group.command("list", epilog="Example:  holdfast deployments list --json")
def list_(tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """List deployments with flow, skills and delegation."""
    return run_async(list_deployments(tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast deployments show refunds")
def show(name: Name, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Show a deployment, and the skills a new run would get."""
    return run_async(show_deployment(name, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast deployments delegate refunds user:dana@acme --until 30d")
def delegate(
    name: Name,
    to: Annotated[str, typer.Argument(help="user:dana@acme", metavar="WHO")],
    until: Annotated[Text, typer.Option(help="Duration, e.g. 30d", metavar="DURATION")] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Assign holds for `delegated_user` to WHO."""
    return run_async(delegate_deployment(name, to, until, by, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast deployments revoke refunds")
def revoke(
    name: Name, by: By = "user:local", tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Revoke the delegation. Holds for `delegated_user` stay unassigned until the next one."""
    return run_async(revoke_deployment(name, by, tenant, store=store, json=json))


async def create_deployment(
    name: str, flow: str, given: dict[str, Any], *, store: str | None, json: bool
) -> Exit:
    from holdfast.cli.flow_check import check_stored_flow

    async with open_store_for_command(store, must_exist=False) as hf:
        await check_stored_flow(hf, flow, given.get("version") or "")
        made = await hf.deploy(name, flow, **given)
    return _print_deployment(
        made, json=json, text=f"Deployment {made.name} of flow {made.flow} is {made.id}."
    )


async def list_deployments(tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        deployments = await hf.deployments()
        found = await deployments.list(tenant=tenant)
        now = deployments.store.now()
    if json:
        print_list(found)
    elif not found:
        print_line("No deployments.")
        print_note("Create one: holdfast deployments create NAME --flow FLOW")
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
    return _print_deployment(made, json=json, text=f"{made.name} works on behalf of {made.delegation.to}.")


async def revoke_deployment(name: str, by: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        made = await (await hf.deployments()).revoke(name, by=by, tenant=tenant)
    return _print_deployment(made, json=json, text=f"The delegation of {made.name} is revoked.")


def _print_deployment(made: Deployment, *, json: bool, text: str) -> Exit:
    if json:
        print_json(made)
    else:
        print_line(text)
    return Exit.ok
