"""`runs` and `show`: the commands that only look."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.shell import Json, Store, Text, app, go


@app.command(
    epilog="Examples:  holdfast runs --status pending_input   ·   holdfast runs --flow refund --json"
)
def runs(
    status: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated")] = None,
    flow: Annotated[Text, typer.Option(help="Only runs of this flow")] = None,
    limit: Annotated[int, typer.Option(help="At most so many", min=1)] = 20,
    store: Store = None,
    json: Json = False,
) -> int:
    """List runs, newest first."""
    from holdfast.cli.looking import list_runs

    return go(list_runs(status or [], flow, limit, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast show 3fa9c1   ·   holdfast show 3fa9c1 --checkpoint 4 --json=interface"
)
def show(
    run: Annotated[
        str, typer.Argument(help="The run's id or its beginning, or a checkpoint's id", metavar="RUN")
    ],
    checkpoint: Annotated[
        int | None, typer.Option(help="The run as it stood after record N", metavar="N")
    ] = None,
    store: Store = None,
    json: Json = False,
    form: Annotated[Text, typer.Option(hidden=True)] = None,
) -> int:
    """Show a run, or any moment of its life. --json=interface gives a checkpoint in the published form."""
    from holdfast.cli.looking import show as look

    return go(look(run, checkpoint, store=store, json=json, form=form))
