"""`holdfast completion`: the completion script of a shell."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import app


@app.command(
    epilog="Examples:  holdfast completion bash   ·   holdfast completion zsh",
)
def completion(
    shell: Annotated[
        str | None, typer.Argument(help="bash, zsh or fish (default: $SHELL)", metavar="SHELL")
    ] = None,
) -> int:
    """Print the completion script of a shell.

    It completes commands, options, runs and flows. For this shell: eval "$(holdfast completion bash)". For
    all: put that line into its start-up file.
    """
    from holdfast.cli.completion import print_script

    return print_script(shell)
