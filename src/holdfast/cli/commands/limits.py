"""`limits`: how many runs of a flow go on at once, and how many start in a while."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async

limits = typer.Typer(
    no_args_is_help=True,
    help="How many runs of a flow go on at once, or start in a while.",
    epilog="Examples:  holdfast limits list   ·   holdfast limits set flow:refund --concurrency 5"
    "   ·   holdfast limits clear flow:refund",
)
app.add_typer(limits, name="limits")

Name = Annotated[
    str,
    typer.Argument(
        help="flow:NAME for all runs of a flow, flow:NAME/* for each key, flow:NAME/KEY for one",
        metavar="LIMIT",
    ),
]


@limits.command(
    "list", epilog="Examples:  holdfast limits list   ·   holdfast limits list flow:refund --keys"
)
def list_(
    prefix: Annotated[str, typer.Argument(help="Only those whose name begins so", metavar="PREFIX")] = "",
    keys: Annotated[bool, typer.Option("--keys", help="Also each key at which runs stand now")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """What holds, how many runs are inside, and how many wait in line."""
    from holdfast.cli.commands.limits__limiting import list_limits

    return run_async(list_limits(prefix, keys=keys, store=store, json=json))


@limits.command(
    "set",
    epilog="Examples:  holdfast limits set flow:refund --concurrency 5 --rate 100/min"
    "   ·   holdfast limits set 'flow:refund/*' --concurrency 1"
    "   ·   holdfast limits set flow:refund --concurrency 0",
)
def set_(
    name: Name,
    concurrency: Annotated[
        Text,
        typer.Option(
            help="So many runs go on at once; 0 stops the flow, none takes the limit away", metavar="N"
        ),
    ] = None,
    rate: Annotated[
        Text, typer.Option(help="So many start in a while: 100/min, 5/s, 20/30s; or none", metavar="RATE")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Set a limit, in place of what the flow declares. It holds at once, and for every worker; what is not
    given stays as it is. Runs that go on already are left alone."""
    from holdfast.cli.commands.limits__limiting import set_limit

    return run_async(set_limit(name, concurrency, rate, store=store, json=json))


@limits.command(epilog="Example:  holdfast limits clear flow:refund")
def clear(name: Name, store: Store = None, json: Json = False) -> int:
    """Take back what was set: what the flow declares holds again."""
    from holdfast.cli.commands.limits__limiting import clear_limit

    return run_async(clear_limit(name, store=store, json=json))
