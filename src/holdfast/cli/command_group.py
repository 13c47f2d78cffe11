"""The group of all commands: it imports a command's module when the command is called.

`--help` prints the table of `holdfast.cli.commands` and imports none of the modules.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from copy import copy
from importlib import import_module
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info, get_command_name, get_group_from_info

from holdfast.cli.commands import COMMANDS, module_of


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
        # Instead of what the modules that were imported so far have registered.
        super().__init__(**attrs)
        self.commands = LazyCommands()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        listing = copy(self)
        listing.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()}
        TyperGroup.format_help(listing, ctx, formatter)


def _build(name: str) -> Any:
    """The command that the module of this name has registered with the application."""
    from holdfast.cli.app import app

    import_module(module_of(name))
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
