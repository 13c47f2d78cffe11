"""`top`: the fleet, live."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, app, run_async


@app.command(
    epilog="Examples:  holdfast top   ·   holdfast top --every 5   ·   holdfast top --once   ·   "
    "holdfast top --json --store postgresql://db.example/shop",
)
def top(
    every: Annotated[float, typer.Option(help="Refresh interval in seconds", min=0.2)] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit (default in a pipe)")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Show workers, lanes, holds and delays, live.

    The key q quits. A worker reports its state every few seconds; a worker that has not reported for the
    length of its lease is shown as silent.
    """
    from holdfast.cli.top.program import top

    return run_async(top(store=store, every=every, once=once, json=json))
