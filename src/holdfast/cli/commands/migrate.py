"""`migrate`: the schema of a shared store, brought up to date in two halves."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, app, run_async


@app.command(
    epilog="Examples:  holdfast migrate --dry-run   ·   holdfast migrate   ·   holdfast migrate --finish",
    short_help="Bring the schema of a shared store up to date.",
)
def migrate(
    finish: Annotated[
        bool,
        typer.Option("--finish", help="The second half: after it, older versions are refused"),
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Finish although an older version seems to be at work")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, change nothing")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Bring the schema up to date, as every worker does that may: for houses where only an owner may.

    It adds only, and workers of the last version go on beside those of this one. When all of them are
    updated, --finish takes away what only they needed; it names whoever of an older version is at work.
    """
    from holdfast.cli.commands.migrate__upgrading import MigrateOptions, migrate_store

    wanted = MigrateOptions(finish=finish, anyway=anyway, dry_run=dry_run, yes=yes)
    return run_async(migrate_store(wanted, store=store, json=json))
