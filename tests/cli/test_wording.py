"""What is said can be typed again, read to its end, and is true."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given

AWKWARD = """
from dataclasses import dataclass
from holdfast import Flow

@dataclass
class Letter:
    text: str = ""
    decision: str = ""
    last: str = "the last field"

letter = Flow("letter", state=Letter)
letter.start(letter.hold("send", prompt="Send it?", options=["send it", "don't", "--no"]))
"""


@pytest.fixture
def letter(tmp_path: Path) -> str:
    file = tmp_path / "letter.py"
    file.write_text(AWKWARD)
    return str(file)


@pytest.mark.covers("TOOL-CLI-01")
@pytest.mark.parametrize("decision", ["send it", "don't", "--no"])
def test_every_suggested_answer_works_as_it_is_shown(cli: Cli, letter: str, decision: str) -> None:
    store = "sqlite:a place.db"
    said = cli("run", letter, "--store", store)
    commands = [shlex.split(line)[1:] for line in said.out.splitlines() if line.startswith("  holdfast")]
    (wanted,) = [words for words in commands if decision in words]

    answered = cli(*wanted)
    assert (answered.code, answered.err.count("Error")) == (0, 0)
    assert (
        cli("show", wanted[1], "--store", store, "--json").json["holds"][0]["resolution"]["decision"]
        == decision
    )


@pytest.mark.covers("TOOL-CLI-01")
def test_who_answers_second_is_told_who_was_first(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["run_id"]
    cli("answer", run, "approve", "--by", "user:ada", "--resume")

    second = cli("answer", run, "reject")
    assert second.code == 2
    assert "user:ada" in second.err


@pytest.mark.covers("TOOL-CLI-01")
def test_a_long_text_hides_no_field_after_it(cli: Cli, letter: str) -> None:
    said = cli("run", letter, "--input", '{"text": "' + "λ" * 9_000 + '"}')
    state = next(line for line in said.out.splitlines() if line.startswith("state"))
    assert "the last field" in state
    assert len(state) < 1_000
    assert "--json shows all" in state


@pytest.mark.covers("TOOL-CLI-01")
@pytest.mark.parametrize("words", [[], ["flows"], ["keys"]])
def test_a_command_without_its_arguments_shows_its_help_and_nothing_else(cli: Cli, words: list[str]) -> None:
    said = cli(*words)
    assert said.code == 2
    assert said.err.startswith("Usage: holdfast")
    assert "See --help" not in said.err


@pytest.mark.covers("TOOL-CLI-18")
def test_importing_what_is_here_says_that_it_was(cli: Cli, refund: str, tmp_path: Path) -> None:
    run = cli("run", refund, "--input", given(80), "--json").json["run_id"]
    file = str(tmp_path / "run.hfrun")
    cli("export", run, "--out", file)

    again = cli("import", file)
    assert again.code == 0
    assert "was here before" in again.out
    assert "new run" not in again.out
    assert cli("import", file, "--json").json["known"] is True
    assert cli("import", file, "--store", "sqlite:elsewhere.db", "--json").json["known"] is False
