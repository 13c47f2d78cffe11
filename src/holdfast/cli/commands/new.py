"""`new` and `completion`: the commands for the first hour."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, app


@app.command(epilog="Examples:  holdfast new expenses   ·   holdfast new tides --template agent")
def new(
    name: Annotated[str, typer.Argument(help="Its name, and that of its folder", metavar="NAME")],
    template: Annotated[str, typer.Option(help="approval, agent or map")] = "approval",
    json: Json = False,
) -> int:
    """Write a new project: a flow that runs, and tests that pass."""
    from holdfast.cli.commands.new__starting import new_project

    return new_project(name, template, json=json)


@app.command(
    epilog="Examples:  holdfast completion bash   ·   holdfast completion zsh",
    short_help="Print the script that completes what you type.",
)
def completion(
    shell: Annotated[
        str | None, typer.Argument(help="bash, zsh or fish; else the one of $SHELL", metavar="SHELL")
    ] = None,
) -> int:
    """Print the script that completes commands, options, runs and flows in a shell.

    For this shell: eval "$(holdfast completion bash)". For all: put that line into its start-up file."""
    from holdfast.cli.completion import print_script

    return print_script(shell)
