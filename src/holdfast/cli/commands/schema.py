"""`holdfast schema`: prints a JSON Schema that is made from the code."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from holdfast.cli.app import app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_json


@app.command(epilog="Examples:  holdfast schema flow > flow.schema.json")
def schema(
    what: Annotated[
        Literal["flow"], typer.Argument(help="flow: the schema of flow documents", metavar="WHAT")
    ],
) -> int:
    """Print the JSON Schema of flow documents, for editors."""
    return run_async(print_schema(what))


async def print_schema(what: str) -> Exit:
    from holdfast.frontends.document.json_schema import flow_schema

    print_json(flow_schema())
    return Exit.ok
