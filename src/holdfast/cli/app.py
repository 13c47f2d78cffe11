"""The command line as a whole, and the options that several commands share.

The group of all commands imports a command's module when the command is called: `--help` prints the table of
`holdfast.cli.commands` and imports none of the modules.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine, Iterator, MutableMapping
from copy import copy
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_command_from_info, get_command_name, get_group_from_info

from holdfast.cli.commands import COMMANDS, GROUPS, module_of

# What an option without words of its own takes, in its help.
METAVARS: Final = {
    "flow": "NAME", "lane": "NAME", "tenant": "NAME", "template": "NAME", "node": "NODE", "stage": "NODE",
    "host": "ADDRESS", "url": "ADDRESS", "port": "PORT", "query": "QUERY", "status": "STATUS",
    "decision": "OPTION", "idempotency_key": "KEY", "key": "KEY", "run_id": "ID", "run": "RUN",
    "patch": "JSON", "every": "SECONDS", "drain": "SECONDS", "time": "DURATION", "since": "DURATION",
    "timeout": "DURATION", "reminder": "DURATION", "version": "VERSION", "assignee": "WHO",
    "calendar": "NAME", "thread": "NAME", "tool": "NAME",
}  # fmt: skip
_LONGEST = max(map(len, COMMANDS))  # the texts of all groups begin in one column


class LazyCommands(MutableMapping[str, Any]):
    """Command name -> its Click command, built at its first use."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            if name not in COMMANDS:
                raise KeyError(name)
            self._built[name] = _build(name)
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands are not removed")

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS


class LazyGroup(TyperGroup):
    def __init__(self, **attrs: Any) -> None:
        # The whole table, and not only the commands whose modules are imported already.
        super().__init__(**attrs)
        self.commands = LazyCommands()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # A copy, because the real group must stay lazy for the command that is called.
        listing = copy(self)
        listing.commands = {
            name: TyperCommand(name, help=line, rich_help_panel=heading)
            for heading, group in GROUPS.items()
            for name, line in group.items()
        }
        TyperGroup.format_help(listing, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Without boxes: Typer knows headings only as panels."""
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(_LONGEST), line) for name, line in group.items()])


def _build(name: str) -> Any:
    """The command that the module of this name has registered with the application."""
    import_module(module_of(name))
    command = _registered(name)
    _set_metavars(command)
    return command


def _set_metavars(command: Any) -> None:
    """Typer would show `<str>` and `<int range>`."""
    for each in command.params:
        if each.metavar is None and not getattr(each, "is_flag", False) and not hasattr(each.type, "choices"):
            if each.param_type_name == "argument":
                each.metavar = each.name.upper() if each.required else f"[{each.name.upper()}]"
            else:
                is_number = each.type.name.startswith(("int", "float"))
                each.metavar = METAVARS.get(each.name, "NUMBER" if is_number else "TEXT")
    for inner in getattr(command, "commands", {}).values():
        _set_metavars(inner)


def _registered(name: str) -> Any:
    for command in app.registered_commands:
        if command.callback and (command.name or get_command_name(command.callback.__name__)) == name:
            return get_command_from_info(
                command,
                pretty_exceptions_short=app.pretty_exceptions_short,
                rich_markup_mode=app.rich_markup_mode,
            )
    for group in app.registered_groups:
        if group.name == name:
            return get_group_from_info(
                group,
                pretty_exceptions_short=app.pretty_exceptions_short,
                suggest_commands=app.suggest_commands,
                rich_markup_mode=app.rich_markup_mode,
            )
    raise LookupError(f"{module_of(name)} registers no command {name!r}")


app = typer.Typer(
    cls=LazyGroup,
    name="holdfast",
    epilog="First steps: `holdfast new NAME` writes a project that runs; `holdfast COMMAND --help` has "
    "examples.",
    no_args_is_help=True,
    # Typer's own options would appear in every --help; `holdfast completion` prints the scripts.
    add_completion=False,
    # Boxes and colours only on a terminal: importing them takes longer than the rest of the start-up.
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
    # Errors become sentences and exit codes in `cli.main`; Typer would print a traceback instead.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Flow = Annotated[str, typer.Argument(help="path/to/file.py[:name] or package.module[:name]", metavar="FLOW")]
Run = Annotated[str, typer.Argument(help="Run id or a unique prefix of it", metavar="RUN")]
OneRun = Annotated[
    str | None, typer.Argument(help="Run id or a unique prefix of it (or --where)", metavar="[RUN]")
]
Store = Annotated[
    str | None,
    typer.Option(
        help="Store address: sqlite:PATH, postgresql://... or mariadb://... (default: HOLDFAST_STORE or "
        "sqlite:.holdfast/holdfast.db)",
        metavar="ADDRESS",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        help="Temporal cluster that drives runs, e.g. temporal://localhost:7233/default (default: "
        "HOLDFAST_ENGINE; if not set: the built-in workers)",
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
    typer.Option(
        help="Pipelines: backend for prompts: model, agent:NAME, cli:COMMAND or file.py:name; NAME=SPEC "
        "gives it a name",
        metavar="WHO",
    ),
]
Backends = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        help="Pipelines: backend for prompts, as NAME=SPEC for runs that name it, or SPEC as the default "
        "(model, agent:NAME, cli:COMMAND or file.py:name); may be repeated",
        metavar="[NAME=]SPEC",
    ),
]
Handlers = Annotated[
    Text, typer.Option(help="Pipelines: a HandlerRegistry, as file.py:name", metavar="WHERE")
]
Functions = Annotated[
    list[str] | None,
    typer.Option(
        help="Documents: file or module with functions that they may call; may be repeated", metavar="WHERE"
    ),
]
Code = Annotated[
    Text,
    typer.Option(
        "--flow", help="Location of the flow's code (default: where the run was started from)", metavar="FLOW"
    ),
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
    from holdfast.model.user_code.boundary import run_loop

    code = 0
    try:
        code = int(run_loop(work))
        # Inside the try: buffered output meets a closed pipe only now, not at the print.
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has closed the pipe (`holdfast runs | head -1`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
