"""`evidence`: one decision as a file that can be checked without us."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async


@app.command(
    epilog="Examples:  holdfast evidence 3fa9c1 -o refund.json --page refund.html   ·   "
    "holdfast evidence 3fa9c1 --key audit.key",
    short_help="One decision as a file that can be checked offline.",
)
def evidence(
    which: Annotated[
        str, typer.Argument(help="A hold's id or its beginning, or a run with one hold", metavar="RUN|HOLD")
    ],
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
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """What was shown, what was decided, by whom, and its place in the audit, in one file.

    `tools/verify_evidence.py` checks it offline, with Python alone.
    """
    from holdfast.cli.commands.evidence__evidencing import EvidenceOptions, write_evidence

    wanted = EvidenceOptions(which, out, page, key, short, by)
    return run_async(write_evidence(wanted, store=store, json=json))
