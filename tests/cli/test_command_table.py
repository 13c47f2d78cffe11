"""The table of commands: it says what the commands say, and a command line imports its own command only."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from holdfast.cli.app import app
from holdfast.cli.commands import COMMANDS, GROUPS, module_of

FOLDER = Path(__file__).parents[2] / "src/holdfast/cli/commands"
WIDTH = 63
"""Characters of a help line that fit beside the longest name in 80 columns."""


@cache
def group() -> Any:
    """Made once: it has every command with all its options."""
    return get_command(app)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_table_is_the_first_line_of_the_commands_own_help(name: str) -> None:
    command = group().commands[name]

    assert command.help.splitlines()[0] == COMMANDS[name]
    assert len(COMMANDS[name]) <= WIDTH
    assert not command.short_help


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.covers("PLAIN-NAME-03")
def test_a_command_is_in_the_module_of_its_name(name: str) -> None:
    module = module_of(name)

    assert find_spec(module) is not None
    assert module.rpartition(".")[2].rstrip("_").replace("_", "-") == name


def test_every_module_of_the_folder_is_a_command() -> None:
    found = {path.stem for path in FOLDER.iterdir() if path.name[0].isalpha()}

    assert found == {module_of(name).rpartition(".")[2] for name in COMMANDS}


def test_help_lists_each_command_once_under_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    from holdfast.cli.main import run

    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = {heading: lines.index(f"{heading}:") for heading in GROUPS}

    assert list(at.values()) == sorted(at.values())
    for heading, group in GROUPS.items():
        below = lines[at[heading] + 1 : at[heading] + 1 + len(group)]
        assert [line.split()[0] for line in below] == list(group)
        assert {line.index(group[line.split()[0]]) for line in below} == {15}


def imported(*argv: str) -> set[str]:
    """The command modules that a fresh process imports for this command line."""
    code = (
        "import sys; from holdfast.cli.main import run; run(sys.argv[1:]); "
        "print(*(n for n in sys.modules if n.startswith('holdfast.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_no_command() -> None:
    assert not {name for name in imported("--help") if name.startswith("holdfast.cli.commands.")}


@pytest.mark.parametrize("name", ["runs", "import", "dead"])
@pytest.mark.covers("PLAIN-NAME-03")
def test_only_the_called_command_is_imported_and_nothing_that_is_slow(name: str) -> None:
    found = imported(name, "--help")

    assert {each for each in found if each.startswith("holdfast.cli.commands.")} == {module_of(name)}
    assert not found & {"holdfast.app.holdfast", "holdfast.runs.service", "holdfast.store.protocols"}


def test_a_run_of_a_python_flow_loads_neither_pipelines_nor_agents(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("from holdfast import Flow\nf = Flow('f')\n@f.node\ndef a(s): return {}\n")

    found = imported("run", str(file), "--store", f"sqlite:{tmp_path / 'f.db'}")

    apart = ("holdfast.agents", "holdfast.attractor", "holdfast.frontends.dot", "holdfast.api")
    assert not {each for each in found if each.startswith(apart)}


def test_an_unknown_command_is_compared_with_all_names(capsys: pytest.CaptureFixture[str]) -> None:
    from holdfast.cli.main import run

    assert run(["rnu"]) == 2
    assert capsys.readouterr().err == "holdfast: no such command 'rnu'. Did you mean 'run'? See --help.\n"
