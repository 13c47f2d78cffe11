"""`policy`: rules for holds, read and tried on what was decided before."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.shell import Json, Store, Text, app, go

group = typer.Typer(
    no_args_is_help=True,
    help="Rules for holds: check a file of them, and see what they would have made of past decisions.",
    epilog="Examples:  holdfast policy check rules.toml   ·   holdfast policy simulate rules.toml",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="policy", short_help="Rules for holds: check, simulate.")


@group.command(
    epilog="Examples:  holdfast policy check rules.toml   ·   holdfast policy check a.toml b.yaml --json"
)
def check(
    files: Annotated[list[str], typer.Argument(help="Rules in TOML, JSON or YAML", metavar="FILE...")],
    json: Json = False,
) -> int:
    """Read rules and list every problem, with its line and field. Exit code 2 where there is one."""
    from holdfast.cli.policies import check as check_files

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
    from holdfast.cli.policies import Past, simulate_file

    past = Past(since=since, tenant=tenant, flows=tuple(flow or ()), limit=limit)
    return go(simulate_file(file, past, store=store, json=json))
