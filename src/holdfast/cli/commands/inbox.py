"""`inbox`: the questions that wait for you, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.commands.holds.group import As, Whose
from holdfast.cli.hold_session import ActorOptions


@app.command(
    epilog="Examples:  holdfast inbox   ·   holdfast inbox --as user:dana@acme   ·   "
    "holdfast inbox --query 'priority>=high'",
)
def inbox(
    query: Annotated[Text, typer.Option(help="Initial search: flow:NAME, priority>=high, ...")] = None,
    view: Annotated[
        Text, typer.Option(help="Initial view: mine, groups, unassigned, watching, all, ...", metavar="VIEW")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Decide your open holds in the terminal.

    The key ? shows all keys, q quits. A decision takes two keys and can be undone for a few seconds. --json
    prints the list and ends.
    """
    from holdfast.cli.inbox.open import open_inbox

    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(open_inbox(options, view=view, query=query or ""))
