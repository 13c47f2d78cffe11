"""`holdfast engine`: the Temporal cluster that drives runs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from holdfast.cli.app import Json, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError

engine = typer.Typer(
    no_args_is_help=True,
    help="Set up the Temporal cluster that drives runs.",
    epilog="Examples:  holdfast engine setup --engine temporal://localhost:7233/default",
)
app.add_typer(engine, name="engine")

Address = Annotated[
    Text,
    typer.Option(
        "--engine",
        help="Address of the cluster, e.g. temporal://localhost:7233/default (default: HOLDFAST_ENGINE)",
        metavar="ADDRESS",
    ),
]


@engine.command(
    epilog="Examples:  holdfast engine setup --engine temporal://localhost:7233/default   ·   "
    "holdfast engine setup --json"
)
def setup(address: Address = None, json: Json = False) -> int:
    """Register the search attributes of runs in the cluster.

    It changes nothing that is there. The namespace must exist.
    """
    return run_async(setup_engine(address, json=json))


async def setup_engine(given: str | None, *, json: bool) -> Exit:
    from holdfast.drivers.temporal import TemporalLink

    address = given or os.environ.get("HOLDFAST_ENGINE")
    if not address:
        raise InputError("no engine is named.", hint="Give --engine, or set HOLDFAST_ENGINE.")
    link = TemporalLink(address)
    made = await link.cluster.setup()
    if json:
        print_json({"engine": link.address.name, "registered": made})
    elif made:
        print_line(f"Registered in {link.address.name}: {', '.join(made)}.")
    else:
        print_line(f"{link.address.name} has everything.")
    return Exit.ok
