"""`audit`: whether what was done to holds is recorded as it was."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="The record of everything that was done to holds, or refused: one chain for each tenant.",
    epilog="Examples:  holdfast audit verify   ·   holdfast audit head --key audit.key -o head.json   ·   "
    "holdfast audit verify --against head.json --key audit.key",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(
    group, name="audit", short_help="The record of what was done to holds, and whether it is whole."
)

Tenant = Annotated[Text, typer.Option("--tenant", help="Whose; without: everybody's")]


@group.command(
    epilog="Examples:  holdfast audit verify   ·   holdfast audit verify --tenant acme --json   ·   "
    "holdfast audit verify --against head.json --key audit.key"
)
def verify(
    tenant: Tenant = None,
    against: Annotated[
        Text, typer.Option("--against", help="A head that was signed before", metavar="FILE")
    ] = None,
    key: Annotated[
        Text, typer.Option("--key", help="The key that it was signed with", metavar="FILE")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Walk the chain from end to end. Exits with 4 where a record was edited, removed or moved."""
    from holdfast.cli.commands.audit__auditing import verify_chain

    return run_async(verify_chain(tenant, against=against, key=key, store=store, json=json))


@group.command(
    "list",
    epilog="Examples:  holdfast audit list   ·   holdfast audit list --after 1200 --limit 50   ·   "
    "holdfast audit list --hold 3fa9c1d2-0000-4000-8000-000000000000 --json",
)
def list_(
    tenant: Annotated[str, typer.Option("--tenant", help="Whose")] = "default",
    hold: Annotated[Text, typer.Option("--hold", help="Of one hold, by its id", metavar="HOLD")] = None,
    after: Annotated[int, typer.Option("--after", help="From behind this record", metavar="N", min=0)] = 0,
    limit: Annotated[int, typer.Option("--limit", help="At most so many", min=1, max=10_000)] = 100,
    store: Store = None,
    json: Json = False,
) -> int:
    """The records in their order, each with the hash that binds it to the one before."""
    from holdfast.cli.commands.audit__auditing import list_records

    return run_async(list_records(tenant, hold=hold, after=after, limit=limit, store=store, json=json))


@group.command(epilog="Example:  holdfast audit head --tenant acme --key audit.key -o head.json")
def head(
    key: Annotated[str, typer.Option("--key", help="At least 16 bytes, kept elsewhere", metavar="FILE")],
    out: Annotated[Text, typer.Option("--out", "-o", help="The file; else stdout", metavar="FILE")] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose")] = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Sign where the chain stands now. Kept elsewhere, it finds a chain that was cut off or written anew."""
    from holdfast.cli.commands.audit__auditing import write_head

    return run_async(write_head(tenant, key=key, out=out, store=store, json=json))
