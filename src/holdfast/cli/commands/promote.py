"""`promote`: a whole store moves."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, app, run_async


@app.command(
    epilog="Examples:  holdfast promote sqlite:runs.db postgresql://holdfast@db/holdfast --dry-run"
    "   ·   holdfast promote sqlite:runs.db postgresql://holdfast@db/holdfast"
    "   ·   holdfast promote postgresql://holdfast@db/holdfast sqlite:back.db"
    "   ·   holdfast promote --undo sqlite:runs.db postgresql://holdfast@db/holdfast",
    short_help="Move a whole store: SQLite to PostgreSQL, and back.",
)
def promote(
    source: Annotated[str, typer.Argument(help="The store to move", metavar="FROM")],
    target: Annotated[str, typer.Argument(help="An empty one, which is made where needed", metavar="TO")],
    wait: Annotated[
        str, typer.Option(help="How long workers of the old store may take to end", metavar="DURATION")
    ] = "10m",
    force: Annotated[
        bool, typer.Option("--force", help="Take runs away from workers instead of waiting")
    ] = False,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Take back a move that is not done: FROM works again, TO is empty"),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would move, change nothing")] = False,
    json: Json = False,
) -> int:
    """Move a whole store: live runs, open holds, timers, history, every id as it was.

    From the moment it begins, workers of the old store get nothing more and end with a sentence that names
    the new one; when they have, everything is copied, compared by count and hash, and the new store opens.
    The old one stays readable. Interrupted or killed: run the same command again, and it goes on.
    """
    from holdfast.cli.commands.promote__promoting import PromoteOptions, promote_store

    wish = PromoteOptions(source=source, target=target, wait=wait, force=force, undo=undo, dry_run=dry_run)
    return run_async(promote_store(wish, json=json))
