"""A command line builds the option parser of its own command only, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from holdfast.cli.commands import app
from holdfast.cli.lazy import app_for_command


def below(command: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        command = command.commands[name]
    return command


def paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from paths(inner, (*path, name))


def help_of(command: Any) -> str:
    return command.get_help(command.make_context("x", [], resilient_parsing=True))


def test_help_of_every_command_is_the_same_when_only_it_is_built() -> None:
    whole = get_command(app)
    for path in paths(whole):
        small = app_for_command(app, [*path, "--help"])
        assert help_of(below(get_command(small), path)) == help_of(below(whole, path)), path


def test_only_the_named_command_is_built() -> None:
    built: Any = get_command(app_for_command(app, ["holds", "resolve", "h1"]))
    assert list(built.commands) == ["holds"]
    assert list(built.commands["holds"].commands) == ["resolve"]


@pytest.mark.parametrize("argv", [["nonsense"], ["--json", "runs"]])
def test_all_commands_are_there_when_the_first_word_is_not_one_of_them(argv: list[str]) -> None:
    assert app_for_command(app, argv) is app
