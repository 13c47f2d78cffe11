"""What is typed wrongly is refused with a sentence and exit code 2, by every command, and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Said, given
from tests.cli.test_every_command import commands, named


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", ".pyc"))
    }


def refused(said: Said, *parts: str) -> None:
    assert said.code == 2, said
    assert said.err.startswith("holdfast: ")
    assert "Traceback" not in said.err
    assert said.out == ""
    for part in parts:
        assert part in said.err


@pytest.fixture
def waiting(cli: Cli, refund: str) -> str:
    return cli("run", refund, "--input", given(250), "--json").json["id"]


@pytest.mark.covers("TOOL-BAD-01", "TOOL-BAD-07", "TOOL-CLI-28")
@pytest.mark.parametrize(("path", "command"), commands(), ids=named)
def test_a_flag_that_there_is_not_is_refused_by_every_command(
    cli: Cli, waiting: str, tmp_path: Path, path: tuple[str, ...], command: Any
) -> None:
    before = contents(tmp_path)
    given_words = [waiting for one in command.params if one.param_type_name == "argument" and one.required]
    refused(cli(*path, *given_words, "--no-such-flag"), "--no-such-flag", "See --help")
    assert contents(tmp_path) == before


@pytest.mark.covers("TOOL-BAD-01", "TOOL-BAD-07", "TOOL-CLI-28")
@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("run", "{flow}", "--priority", "soon"), ("--priority", "is not a whole number. See --help")),
        (("run", "{flow}", "--run-id", "17"), ("17",)),
        (("run", "{flow}", "--input", "{{"), ("--input is not JSON",)),
        (("runs", "--limit", "0"), ("--limit",)),
        (("runs", "--newer", "yesterday"), ("yesterday",)),
        (("show", "{run}", "--checkpoint", "99"), ("99",)),
        (("checkpoints", "{run}", "--range", "9:2"), ("9:2",)),
        (("diff", "{run}", "nobody"), ("nobody",)),
        (("fork", "{run}", "--set", "amount"), ("amount",)),
        (("fork", "{run}", "--patch", "[1]"), ("patch",)),
        (("rewind", "{run}@x"), ("x",)),
        (("replay", "{run}", "--upto", "-1"), ("--upto",)),
        (("prune", "--keep", "-1"), ("--keep",)),
        (("prune", "--older", "soon"), ("soon",)),
        (("graph", "{run}", "--svg", "no/such/folder/x.svg"), ("no/such/folder",)),
        (("worker", "{flow}", "--concurrency", "0"), ("--concurrency",)),
        (("torture", "{flow}", "--max", "0"), ("--max",)),
        (("new", "9lives"), ("9lives",)),
        (("completion", "csh"), ("csh",)),
    ],
    ids=lambda case: " ".join(case[:3]) if isinstance(case, tuple) else "",
)
def test_a_value_that_does_not_fit_is_named(
    cli: Cli, refund: str, waiting: str, tmp_path: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    before = contents(tmp_path)
    typed = [word.replace("{flow}", refund).replace("{run}", waiting) for word in words]
    refused(cli(*typed), *parts)
    assert contents(tmp_path) == before


@pytest.mark.covers("TOOL-BAD-01", "TOOL-BAD-07", "HOLD-AUDIT-01")
def test_an_answer_that_does_not_fit_is_named_and_leaves_a_record_of_the_refusal(
    cli: Cli, waiting: str
) -> None:
    before = cli("show", waiting, "--json").json
    refused(cli("answer", waiting, "perhaps"), "perhaps", "approve")
    assert cli("show", waiting, "--json").json == before
    assert cli("audit", "verify", "--json").items[0]["records"] == 2


@pytest.mark.covers("TOOL-BAD-02", "TOOL-BAD-07")
@pytest.mark.parametrize(
    "words",
    [
        ("run", "{flow}", "--input", "@{file}"),
        ("run", "{file}.py"),
        ("answer", "{run}", "approve", "--data", "@{file}"),
        ("fork", "{run}", "--patch", "@{file}"),
        ("rewind", "{run}", "--input", "@{file}"),
        ("import", "{file}"),
        ("torture", "{flow}", "--input", "@{file}"),
        ("flows", "check", "{file}.py"),
        ("graph", "{file}.py"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
@pytest.mark.parametrize("kind", ["absent", "a folder"])
def test_a_file_that_cannot_be_read_is_named(
    cli: Cli, refund: str, waiting: str, tmp_path: Path, words: tuple[str, ...], kind: str
) -> None:
    place = tmp_path / "given"
    if kind == "a folder":
        place.mkdir()
        (tmp_path / "given.py").mkdir()
    before = contents(tmp_path)
    typed = [word.format(flow=refund, run=waiting, file=place) for word in words]
    refused(cli(*typed), "given")
    assert contents(tmp_path) == before


@pytest.mark.covers("TOOL-CLI-28")
def test_exit_codes_say_how_it_went(cli: Cli, refund: str, tmp_path: Path) -> None:
    assert cli("run", refund, "--input", given(20)).code == 0
    assert cli("run", refund, "--input", given(-1)).code == 1
    assert cli("run", refund, "--input", "nothing").code == 2
    assert cli("run", refund, "--input", given(250)).code == 3
    assert cli("runs", "--store", f"sqlite:{tmp_path}/none.db").code == 4
