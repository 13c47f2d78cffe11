"""The command line as a whole, and the options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from holdfast.cli.command_group import LazyGroup

app = typer.Typer(
    cls=LazyGroup,
    name="holdfast",
    no_args_is_help=True,
    add_completion=False,
    # Boxes and colours for people only: loading them costs more than all the rest of the start.
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Flow = Annotated[str, typer.Argument(help="path/to/file.py[:name] or package.module[:name]", metavar="FLOW")]
Run = Annotated[str, typer.Argument(help="Run id or a unique prefix of it", metavar="RUN")]
Store = Annotated[
    str | None,
    typer.Option(
        help="Store address: sqlite:PATH or postgresql://... (default: HOLDFAST_STORE or "
        "sqlite:.holdfast/holdfast.db)",
        metavar="ADDRESS",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Show events as they are recorded")]
Text = str | None
Breaks = Annotated[
    list[str] | None,
    typer.Option(
        "--break", help="Stop before this node (child/node in a sub-flow); may be repeated", metavar="NODE"
    ),
]
By = Annotated[str, typer.Option(help="Acting person, e.g. user:dana", metavar="WHO")]
OfTenant = Annotated[str, typer.Option("--tenant", help="Tenant")]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role", help="viewer, member, approver, operator or admin; may be repeated", metavar="ROLE"
    ),
]
Tenant = Annotated[str, typer.Option(help="Tenant whose runs and holds it may use")]
Backend = Annotated[
    Text,
    typer.Option(help="Pipelines: backend for prompts: model, cli:COMMAND or file.py:name", metavar="WHO"),
]
Handlers = Annotated[
    Text, typer.Option(help="Pipelines: a HandlerRegistry, as file.py:name", metavar="WHERE")
]
Code = Annotated[
    Text, typer.Option("--flow", help="Location of the flow's code (default: where the run was started from)")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from holdfast._version import __version__

        print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def holdfast(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version")
    ] = False,
) -> None:
    """Durable workflows: runs that survive crashes, and wait for people without a process."""


@cache
def command_line() -> Any:
    """The parser of the whole command line. Commands are built when they are called, once in a process."""
    return get_command(app)


def run_async(work: Coroutine[Any, Any, int]) -> int:
    import asyncio

    try:
        code = int(asyncio.run(work))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`holdfast runs | head -1`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code
