"""`holdfast limits`: limits on how many runs are active or start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.types.text import one_line

if TYPE_CHECKING:
    from holdfast.runs.concurrency_limits.service import Limit

_HEADS = ("limit", "at once", "rate", "running", "waiting", "set by")
limits = typer.Typer(
    no_args_is_help=True,
    help="Limit how many runs are active at once or start per period.",
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
    prefix: Annotated[
        str, typer.Argument(help="Only limits whose name starts with this", metavar="PREFIX")
    ] = "",
    keys: Annotated[bool, typer.Option("--keys", help="Also list each key that has runs")] = False,
    tenant: Annotated[
        str, typer.Option("--tenant", help="Tenant whose limits of map items are listed")
    ] = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """List limits with the number of active and queued runs.

    A limit that items of maps share (limit_key=) is listed as items:KEY while items run or wait. Its counts
    are items, and --json names the run of each.
    """
    return run_async(list_limits(prefix, keys=keys, tenant=tenant, store=store, json=json))


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
            help="Maximum number of active runs; 0 stops the flow, none removes the limit", metavar="N"
        ),
    ] = None,
    rate: Annotated[
        Text,
        typer.Option(
            help="Maximum number of starts: 100/min, 5/s, 20/30s; none removes the limit", metavar="RATE"
        ),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Set a limit, overriding what the flow declares.

    It applies at once and to every worker; options that are not given keep their value. Active runs are not
    stopped.
    """
    return run_async(set_limit(name, concurrency, rate, store=store, json=json))


@limits.command(epilog="Example:  holdfast limits clear flow:refund")
def clear(name: Name, store: Store = None, json: Json = False) -> int:
    """Remove a limit that was set. The flow's declared limit applies again."""
    return run_async(clear_limit(name, store=store, json=json))


async def list_limits(prefix: str, *, keys: bool, tenant: str, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.limits()).list(prefix, keys=keys, tenant=tenant)
    if json:
        print_list([msgspec.structs.asdict(limit) for limit in found])
    elif found:
        print_table(_HEADS, [_cells(limit) for limit in found])
    else:
        print_line(
            "No limits. Flows declare them, or you set them: holdfast limits set flow:NAME --concurrency 5"
        )
    return Exit.ok


async def set_limit(
    name: str, concurrency: str | None, rate: str | None, *, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        limit = await (await hf.limits()).change(name, concurrency=concurrency, rate=rate)
    _print_limit(limit, json=json)
    return Exit.ok


async def clear_limit(name: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        limit = await (await hf.limits()).clear(name)
    if limit is not None:
        _print_limit(limit, json=json)
    elif json:
        print_json(None)
    else:
        print_line(f"{name} has no limit any more.")
    return Exit.ok


def _print_limit(limit: Limit, *, json: bool) -> None:
    if json:
        print_json(msgspec.structs.asdict(limit))
    else:
        print_table(_HEADS, [_cells(limit)])


def _cells(limit: Limit) -> tuple[str, ...]:
    return (
        one_line(limit.name),
        "" if limit.concurrency is None else str(limit.concurrency),
        limit.rate or "",
        str(limit.running),
        str(limit.waiting),
        "operator" if limit.fixed else "map" if limit.name.startswith("items:") else "flow",
    )
