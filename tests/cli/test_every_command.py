"""What all commands have in common: help with examples that can be typed, `--json`, and a quick start."""

from __future__ import annotations

import shlex
from functools import cache
from typing import Any

import pytest
import typer

from holdfast.cli.app import app
from tests.cli.conftest import Cli, given

NOT_FOR_MACHINES = {"completion", "mcp", "schema"}  # schema prints JSON anyway
"""What they say is a script for a shell, and a protocol: there is no other form of it."""

SHELL = ("|", ">", "<", "&&")


@cache
def whole() -> Any:
    """Each command is built once for all tests: it takes as long as the rest of a test."""
    return typer.main.get_command(app)


def commands(group: Any = None, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    group = group or whole()
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, command in group.commands.items():
        here = (*path, name)
        found += commands(command, here) if hasattr(command, "commands") else [(here, command)]
        if hasattr(command, "commands") and command.invoke_without_command:
            found.append((here, command))
    return found


def named(case: Any) -> str:
    return " ".join(case) if isinstance(case, tuple) else ""


@pytest.mark.covers("TOOL-CLI-25")
@pytest.mark.parametrize(("path", "command"), commands(), ids=named)
def test_a_command_has_json(path: tuple[str, ...], command: Any) -> None:
    options = {name for parameter in command.params for name in parameter.opts}

    assert "--json" in options or path[0] in NOT_FOR_MACHINES


def examples(command: Any) -> list[str]:
    text = " ".join((command.epilog or "").split())
    return [part.strip() for part in text.partition(":")[2].split("·")]


@pytest.mark.covers("TOOL-CLI-29")
@pytest.mark.parametrize(("path", "command"), commands(), ids=named)
def test_a_command_has_help_and_examples_that_can_be_typed(path: tuple[str, ...], command: Any) -> None:
    assert command.help
    assert examples(command)
    for example in examples(command):
        program, *words = shlex.split(example, comments=True)
        assert program == "holdfast"
        _parse(words[: next((i for i, word in enumerate(words) if word in SHELL), len(words))])


def _parse(words: list[str]) -> None:
    """Raises a usage error where a command, an option or a value is not known; runs nothing."""
    from holdfast.cli.main import _spelled_out  # pyright: ignore[reportPrivateUsage]

    group = whole()
    rest = _spelled_out(words)
    while hasattr(group, "commands") and rest and rest[0] in group.commands:
        group, rest = group.commands[rest[0]], rest[1:]
    group.make_context(group.name, list(rest)).close()


@pytest.mark.covers("TOOL-CLI-25")
def test_worker_says_in_json_what_it_carries(cli: Cli, refund: str) -> None:
    said = cli("worker", refund, "--until-idle", "--json", "--lane", "fast")

    assert said.code == 0
    assert list(said.json["flows"]) == ["refund"]
    assert (said.json["lanes"], said.json["concurrency"]) == (["fast"], 10)


@pytest.mark.covers("TOOL-CLI-25")
def test_a_refusal_leaves_stdout_to_json_alone(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(80))

    said = cli("show", "nothing", "--json")

    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("holdfast: ")


@pytest.mark.covers("TOOL-CLI-29")
def test_help_says_what_each_command_does_without_cutting_it_off(cli: Cli) -> None:
    lines = cli("--help").out.partition("Commands:")[2].splitlines()
    assert [line for line in lines if line.endswith("...")] == []
