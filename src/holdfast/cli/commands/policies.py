"""`policy`: rules for holds, read, tried on what was decided before, and kept."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="Rules for holds: check and keep them, and see what they would have made of past decisions.",
    epilog="Examples:  holdfast policy check rules.toml   ·   holdfast policy simulate rules.toml",
    rich_markup_mode=app.rich_markup_mode,
)
Whose = Annotated[Text, typer.Option("--tenant", help="Of this tenant")]
app.add_typer(group, name="policy", short_help="Rules for holds: check, simulate, keep.")


@group.command(
    epilog="Examples:  holdfast policy check rules.toml   ·   holdfast policy check a.toml b.yaml --json"
)
def check(
    files: Annotated[list[str], typer.Argument(help="Rules in TOML, JSON or YAML", metavar="FILE...")],
    json: Json = False,
) -> int:
    """Read rules and list every problem, with its line and field. Exit code 2 where there is one."""
    from holdfast.cli.commands.policies__policies import check_policies as check_files

    return int(check_files(files, json=json))


@group.command(
    epilog="Examples:  holdfast policy simulate rules.toml   ·   "
    "holdfast policy simulate rules.toml --since 30d --flow refund --json"
)
def simulate(
    file: Annotated[str, typer.Argument(help="Rules in TOML, JSON or YAML", metavar="FILE")],
    since: Annotated[Text, typer.Option(help="Only holds asked since then: an age such as 30d")] = None,
    flow: Annotated[
        list[str] | None, typer.Option("--flow", help="Only holds of this flow; may be repeated")
    ] = None,
    tenant: Annotated[Text, typer.Option(help="Only this tenant's")] = None,
    limit: Annotated[int, typer.Option(help="At most so many decisions", min=1)] = 10_000,
    store: Store = None,
    json: Json = False,
) -> int:
    """Replay past decisions under FILE and list what would differ.

    Whom each would have gone to, how many it takes, how long they have, what would have come out. Asks no
    judge and changes nothing.
    """
    from holdfast.cli.commands.policies__policies import SimulationOptions, simulate_file

    past = SimulationOptions(since=since, tenant=tenant, flows=tuple(flow or ()), limit=limit)
    return run_async(simulate_file(file, past, store=store, json=json))


@group.command("list", epilog="Example:  holdfast policy list")
def list_(tenant: Whose = None, store: Store = None, json: Json = False) -> int:
    """The policies that are kept in the store."""
    from holdfast.cli.commands.policies__policies import show_policies as list_policies

    return run_async(list_policies(tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast policy put rules.toml")
def put(
    file: Annotated[str, typer.Argument(help="Rules in TOML, JSON or YAML", metavar="FILE")],
    by: By = "user:local",
    tenant: Whose = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Keep a policy in the store, in place of the one of its name. Open holds stay as they are."""
    from holdfast.cli.commands.policies__policies import save_policy as put_file

    return run_async(put_file(file, by, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast policy drop refunds")
def drop(
    name: Annotated[str, typer.Argument(help="The policy", metavar="NAME")],
    by: By = "user:local",
    tenant: Whose = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Take a policy out of the store. What it may still decide goes to people."""
    from holdfast.cli.commands.policies__policies import delete_policy as drop_one

    return run_async(drop_one(name, by, tenant, store=store, json=json))
