"""`deployments`: flows put to work under a name, with skills, defaults and delegation."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="Deployments: a flow under a name, with the skills it binds and on whose behalf it works.",
    epilog="Examples:  holdfast deployments create desk --flow refund --skill refunds@^1   ·   "
    "holdfast deployments delegate desk user:dana@acme --until 30d   ·   "
    "holdfast run refund.py --deployment desk",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="deployments", short_help="Deployments: create, list, show, delegate, revoke.")

Name = Annotated[str, typer.Argument(help="Its name or id", metavar="NAME")]
Whose = Annotated[str, typer.Option("--tenant", help="Whose deployments")]


@group.command(
    epilog="Examples:  holdfast deployments create desk --flow refund --skill refunds@^1   ·   "
    "holdfast deployments create cases --flow case --mode entity --assignee group:desk --timeout 2d"
)
def create(
    name: Annotated[str, typer.Argument(help="Its name", metavar="NAME")],
    flow: Annotated[str, typer.Option("--flow", help="The name of the flow")],
    version: Annotated[str, typer.Option(help="Only this version of the flow")] = "",
    mode: Annotated[str, typer.Option(help="plain, or entity: each run names one")] = "plain",
    skill: Annotated[
        list[str] | None, typer.Option("--skill", help="NAME@RANGE; may be repeated", metavar="SKILL")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict-skills", help="A pinned skill whose content was changed fails its node")
    ] = False,
    assignee: Annotated[Text, typer.Option(help="Of holds that name nobody")] = None,
    priority: Annotated[Text, typer.Option(help="Of holds with no priority of their own")] = None,
    calendar: Annotated[Text, typer.Option(help="Of holds that name none")] = None,
    timeout: Annotated[Text, typer.Option(help="Of holds that have none: 2d, 4bh")] = None,
    on_timeout: Annotated[Text, typer.Option(help="cancel, default_option, fail, escalate:WHO")] = None,
    reminder: Annotated[Text, typer.Option(help="How often people are reminded: 4h")] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", help="Only this policy; may be repeated", metavar="NAME")
    ] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Make a deployment, or change its settings for runs that start later."""
    from holdfast.cli.commands.deployments__deploying import create_deployment

    given = {
        "version": version, "mode": mode, "skills": skill or (), "by": by, "tenant": tenant,
        "on_changed_skill": "fail" if strict else "warn", "assignee": assignee, "priority": priority,
        "calendar": calendar, "timeout": timeout, "on_timeout": on_timeout, "reminder": reminder,
        "policies": policy or (),
    }  # fmt: skip
    return run_async(create_deployment(name, flow, given, store=store, json=json))


@group.command("list", epilog="Example:  holdfast deployments list --json")
def list_(tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Every deployment, with its flow, skills and delegation."""
    from holdfast.cli.commands.deployments__deploying import list_deployments

    return run_async(list_deployments(tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast deployments show desk")
def show(name: Name, tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """One deployment, and the skill versions that a run would be pinned to now."""
    from holdfast.cli.commands.deployments__deploying import show_deployment

    return run_async(show_deployment(name, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast deployments delegate desk user:dana@acme --until 30d")
def delegate(
    name: Name,
    to: Annotated[str, typer.Argument(help="user:dana@acme", metavar="WHO")],
    until: Annotated[Text, typer.Option(help="For so long: 30d", metavar="DURATION")] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """From now on it works on behalf of WHO, to whom its holds for `delegated_user` go."""
    from holdfast.cli.commands.deployments__deploying import delegate_deployment

    return run_async(delegate_deployment(name, to, until, by, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast deployments revoke desk")
def revoke(
    name: Name, by: By = "user:local", tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Take the delegation back: its holds for `delegated_user` are unrouted until it is given again."""
    from holdfast.cli.commands.deployments__deploying import revoke_deployment

    return run_async(revoke_deployment(name, by, tenant, store=store, json=json))
