"""Shell completion: commands and options by the option parser, names of runs and flows from the store.

No flow's code is loaded. If the store is missing or broken, nothing is completed or printed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.cli.main import Exit
from holdfast.errors import InputError
from holdfast.types.status import RunStatus

VARIABLE: Final = "_HOLDFAST_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")
_NEWEST = 100
_NOT_NOW = ("HOLDFAST_OTEL", "HOLDFAST_LOG", "HOLDFAST_LOG_LEVEL")


class Item(NamedTuple):
    """The same attributes as the option parser's items."""

    value: str
    help: str = ""
    type: str = "plain"


Found = Callable[[str | None, str], Coroutine[Any, Any, list[Item]]]
"""Takes the store's address and the text typed so far."""


def print_script(shell: str | None) -> int:
    # Typer's public way to these scripts would add its options to every --help.
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage]

    wanted = shell or Path(os.environ.get("SHELL", "")).name
    if wanted not in SHELLS:
        raise InputError(
            f"no completion for {wanted or 'an unknown shell'}.",
            hint=f"Name one: holdfast completion {'|'.join(SHELLS)}.",
        )
    print(get_completion_script(prog_name="holdfast", complete_var=VARIABLE, shell=wanted))
    return Exit.ok


def complete() -> int:
    """Called by the scripts; the words are in environment variables."""
    from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage]

    from holdfast.cli.app import command_line

    for name in _NOT_NOW:
        # A log line or an export would end up in the line that is being typed, or delay it.
        os.environ.pop(name, None)
    completion_init()
    command = command_line()
    for parameter in _parameters(command):
        _set_completion(parameter)
    try:
        command.main(args=[], prog_name="holdfast", complete_var=VARIABLE)
    except SystemExit as over:
        return int(over.code or 0)
    return Exit.ok


def _parameters(group: Any) -> Iterator[Any]:
    """Every command, also inside groups."""
    for inner in group.commands.values():
        yield from inner.params
        if hasattr(inner, "commands"):
            yield from _parameters(inner)


def _set_completion(parameter: Any) -> None:
    """By the name of a parameter: every command with a parameter for a run completes runs."""
    kind = str(parameter.metavar or "").split("|")[0].strip("[].").upper()
    name = parameter.name
    if kind == "RUN" and name != "flow":
        parameter.shell_complete = _from_store(_runs)
    elif kind == "HOLD":
        parameter.shell_complete = _from_store(_holds)
    elif kind == "VIEW":
        from holdfast.holds.queries.list import VIEWS

        parameter.shell_complete = _fixed(VIEWS)
    elif name == "flow" and parameter.param_type_name == "option":
        parameter.shell_complete = _from_store(_flows)
    elif name == "status":
        parameter.shell_complete = _fixed(tuple(RunStatus))
    elif name == "shell":
        parameter.shell_complete = _fixed(SHELLS)
    elif name == "template":
        from holdfast.cli.commands.new import TEMPLATES

        parameter.shell_complete = _fixed(tuple(TEMPLATES))


def _fixed(words: tuple[str, ...]) -> Callable[[Any, str], list[Item]]:
    return lambda _ctx, begun: [Item(str(word)) for word in words if word.startswith(begun)]


def _from_store(find: Found) -> Callable[[Any, str], list[Item]]:
    def found(ctx: Any, begun: str) -> list[Item]:
        try:
            return asyncio.run(find(ctx.params.get("store"), begun))
        except Exception:
            return []  # an error text would be inserted into the line that is being typed

    return found


async def _runs(store: str | None, begun: str) -> list[Item]:
    from holdfast.cli.options.store import open_store_for_command
    from holdfast.cli.output.results import status_text
    from holdfast.runs.run_view import shown_runs
    from holdfast.store.rows import RunFilter

    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        rows = await opened.list_runs(RunFilter(), after=None, limit=_NEWEST)
        rows = [row for row in rows if row.id.startswith(begun)]
        # Older runs only if no recent one matches: the usual case needs one small query.
        if not rows and begun:
            rows = await opened.find_runs(begun)
        return [Item(row.id, f"{row.flow}: {status_text(row)}") for row in await shown_runs(opened, rows)]


async def _holds(store: str | None, begun: str) -> list[Item]:
    """Open holds of all assignees."""
    from holdfast.cli.options.store import open_store_for_command
    from holdfast.types.hold import HoldFilter, HoldOrder
    from holdfast.types.status import HoldStatus

    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        where = HoldFilter(status=(HoldStatus.pending,))
        rows = [row for row, _ in await opened.list_holds(where, order=HoldOrder.newest, limit=_NEWEST)]
        return [Item(row.id, f"{row.flow}: {row.prompt[:60]}") for row in rows if row.id.startswith(begun)]


async def _flows(store: str | None, begun: str) -> list[Item]:
    from holdfast.cli.options.store import open_store_for_command

    async with open_store_for_command(store, must_exist=True) as hf:
        rows = await (await hf.open()).flows()
        return [Item(name) for name in sorted({row.name for row in rows}) if name.startswith(begun)]
