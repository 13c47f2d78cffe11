"""`holdfast validate`: `holdfast check` for pipelines written in DOT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli.app import Json, Text, app, run_async
from holdfast.cli.commands.check import check_pipeline, print_checked
from holdfast.cli.main import Exit


@app.command(
    epilog="Examples:  holdfast validate build.dot   ·   holdfast validate build.dot ship.dot --strict   ·   "
    "holdfast validate build.dot --format sarif > out.sarif   ·   holdfast validate - < build.dot"
)
def validate(
    files: Annotated[list[str], typer.Argument(help="Pipelines in DOT; - for stdin", metavar="FILE")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Strict grammar: tolerated deviations are errors")
    ] = False,
    form: Annotated[Text, typer.Option("--format", help="text, json or sarif", metavar="FORM")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="Handler type that you registered; may be repeated", metavar="NAME"),
    ] = None,
    json: Json = False,
) -> int:
    """Check pipelines and report every problem with its position.

    Exit code 1: at least one has an error; 2: one of them could not be read.
    """
    return run_async(
        validate_files(files, strict=strict, form=form or ("json" if json else "text"), types=types or [])
    )


async def validate_files(files: Sequence[str], *, strict: bool, form: str, types: Sequence[str]) -> Exit:
    return print_checked([check_pipeline(file, strict=strict, types=types) for file in files], form)
