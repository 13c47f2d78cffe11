"""The option parser of the one command that is called for: building all takes longer than most run."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import typer
from typer.models import CommandInfo, TyperInfo


def app_for_command(app: typer.Typer, argv: list[str]) -> typer.Typer:
    """The same app for this command line. A word that names nothing gets all commands: they are suggested."""
    words = [word for word in argv if not word.startswith("-")]
    # What follows an option may be its value; only words before any option are certain to be names.
    certain = len(words) and argv[0] == words[0]
    if not words:
        return _listing(app)
    return _with(app, words) if certain else app


def _with(app: typer.Typer, words: list[str]) -> typer.Typer:
    commands = [info for info in app.registered_commands if _name_of(info) == words[0]]
    groups = [info for info in app.registered_groups if _group_name(info) == words[0]]
    if not commands and not groups:
        return app
    found = copy(app)
    found.registered_commands = commands
    found.registered_groups = [_group_with(info, words[1:]) for info in groups]
    return found


def _group_with(info: TyperInfo, words: list[str]) -> TyperInfo:
    inner = info.typer_instance
    if inner is None:
        return info
    found = copy(info)
    found.typer_instance = _with(inner, words) if words else _listing(inner)
    return found


def _listing(app: typer.Typer) -> typer.Typer:
    """What the help shows of each command: its name and its first lines."""
    found = copy(app)
    found.registered_commands = [_bare(info) for info in app.registered_commands]
    found.registered_groups = [_bare_group(info) for info in app.registered_groups]
    return found


def _bare(info: CommandInfo) -> CommandInfo:
    assert info.callback is not None
    found = copy(info)
    found.name = _name_of(info)
    found.callback = _without_options(info.callback)
    return found


def _without_options(callback: Callable[..., Any]) -> Callable[[], None]:
    def told() -> None: ...

    told.__doc__ = callback.__doc__
    return told


def _bare_group(info: TyperInfo) -> TyperInfo:
    if info.typer_instance is None:
        return info
    found = copy(info)
    found.typer_instance = copy(info.typer_instance)
    found.typer_instance.registered_commands = []
    found.typer_instance.registered_groups = []
    return found


def _name_of(info: CommandInfo) -> str:
    if info.name or info.callback is None:
        return info.name or ""
    return info.callback.__name__.lower().replace("_", "-")


def _group_name(info: TyperInfo) -> str:
    name = info.name
    if not isinstance(name, str) and info.typer_instance is not None:
        name = info.typer_instance.info.name
    return name if isinstance(name, str) else ""
