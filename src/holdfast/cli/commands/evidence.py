"""`evidence`: one decision as a file that can be checked without us."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.shell import Json, Store, Text, app, go


@app.command(
    epilog="Examples:  holdfast evidence HOLD -o refund.json --page refund.html   ·   "
    "holdfast evidence HOLD --key audit.key",
    short_help="One decision as a file that can be checked offline.",
)
def evidence(
    hold: Annotated[str, typer.Argument(help="The hold's id", metavar="HOLD")],
    out: Annotated[
        Text,
        typer.Option("--out", "-o", help="The file; - for stdout; else HOLD.evidence.json", metavar="FILE|-"),
    ] = None,
    page: Annotated[
        Text, typer.Option("--page", help="Also a page to read: FILE.html or FILE.md", metavar="FILE")
    ] = None,
    key: Annotated[
        Text, typer.Option("--key", help="Sign it with the key in this file", metavar="FILE")
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="The audit only as far as this hold's last record")
    ] = False,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose hold it is")] = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """What was shown, what was decided, by whom, and its place in the audit, in one file.

    `tools/verify_evidence.py` checks it offline, with Python alone.
    """
    from holdfast.cli.evidencing import Wanted, write_evidence

    wanted = Wanted(hold, out, page, key, short, tenant)
    return go(write_evidence(wanted, store=store, json=json))
