"""`inbox`: the questions that wait for you, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.commands.holds import As, Whose


@app.command(
    epilog="Examples:  holdfast inbox   ·   holdfast inbox --as user:dana@acme   ·   "
    "holdfast inbox --query 'priority>=high'",
    short_help="The questions that wait for you, in the terminal.",
)
def inbox(
    query: Annotated[Text, typer.Option(help="Begin with a search: flow:NAME, priority>=high, ...")] = None,
    view: Annotated[
        Text, typer.Option(help="Begin with: mine, groups, unrouted, watching, all, ...", metavar="VIEW")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Read, decide and hand on by key, while others do the same. The key ? shows the others, q leaves.

    A decision takes two keys, and can be taken back for a few seconds. --json prints the list and ends.
    """
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.inbox.program import open_inbox

    seat = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(open_inbox(seat, view=view, query=query or ""))
