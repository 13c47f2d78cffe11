"""`holdfast schema`: prints a JSON Schema that is made from the code."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from holdfast.cli.app import app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.output.json_output import print_json


@app.command(epilog="Examples:  holdfast schema flow > flow.schema.json   ·   holdfast schema verdict")
def schema(
    what: Annotated[
        Literal["flow", "verdict"],
        typer.Argument(help="flow: flow documents; verdict: what stages of pipelines report", metavar="WHAT"),
    ],
) -> int:
    """Print the JSON Schema of flow documents or of verdicts."""
    return run_async(print_schema(what))


async def print_schema(what: str) -> Exit:
    if what == "verdict":
        from holdfast.attractor.verdict import verdict_schema

        print_json(verdict_schema())
        return Exit.ok
    from holdfast.frontends.document.json_schema import flow_schema

    print_json(flow_schema())
    return Exit.ok
