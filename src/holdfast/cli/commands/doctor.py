"""`doctor`: is everything as it should be, and if not, what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, app, run_async


@app.command(
    epilog="Examples:  holdfast doctor   ·   holdfast doctor --deep --store sqlite:runs.db --json",
    short_help="Look the store over and say what to do.",
)
def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every record and blob of every run; may take long")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Look the store over: file, schema, records, blobs, leases, workers, code, keys, room. Changes nothing.

    Exit code 1 where something is wrong; what only deserves a look does not count.
    """
    from holdfast.cli.commands.doctor__doctor import run_doctor

    return run_async(run_doctor(store=store, deep=deep, json=json))
