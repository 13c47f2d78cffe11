"""`dead`: runs that were given up because they killed their workers."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Run, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="Dead letters: runs that were given up because they killed one worker after the other.",
    epilog="Examples:  holdfast dead list   ·   holdfast dead show 3fa9c1   ·   holdfast dead retry 3fa9c1",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="dead", short_help="Dead letters: list, show, retry, discard.")


@group.command("list", epilog="Example:  holdfast dead list --json")
def list_(
    tenant: Annotated[Text, typer.Option(help="Only runs of this tenant")] = None,
    limit: Annotated[int, typer.Option(help="At most so many", min=1)] = 20,
    store: Store = None,
    json: Json = False,
) -> int:
    """Runs that nobody goes on with until somebody decides, newest first."""
    from holdfast.cli.commands.dead__burying import list_dead

    return run_async(list_dead(tenant, limit, store=store, json=json))


@group.command(epilog="Example:  holdfast dead show 3fa9c1")
def show(run: Run, store: Store = None, json: Json = False) -> int:
    """Every worker that this run lost: when, at which record, and which nodes were under way."""
    from holdfast.cli.commands.dead__burying import show_dead

    return run_async(show_dead(run, store=store, json=json))


@group.command(epilog="Example:  holdfast dead retry 3fa9c1 --by user:dana")
def retry(run: Run, by: By = "user:local", store: Store = None, json: Json = False) -> int:
    """What killed it is mended: a worker may go on where it stood. Its deaths stay on record."""
    from holdfast.cli.commands.dead__burying import retry_dead

    return run_async(retry_dead(run, by, store=store, json=json))


@group.command(epilog="Example:  holdfast dead discard 3fa9c1 --reason 'the order was cancelled'")
def discard(
    run: Run,
    reason: Annotated[str, typer.Option(help="Kept with the run")] = "discarded",
    unread: Annotated[bool, typer.Option("--unread", help="End it here, without loading it")] = False,
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Not worth mending: it ends as cancelled, its questions are withdrawn, none of its nodes runs again.

    The next worker that carries its flow does it. Where loading the run is what kills, or nobody carries
    its flow any more: --unread."""
    from holdfast.cli.commands.dead__burying import discard_dead

    return run_async(discard_dead(run, reason, by, unread=unread, store=store, json=json))
