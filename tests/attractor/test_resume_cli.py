"""`holdfast run --resume DIR` and `holdfast export --attractor`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.attractor.run import line
from tests.cli.conftest import Cli, cli, logs

__all__ = ["cli", "logs"]

TOOL = "shape=parallelogram, tool_command"
TEXT = line(f'a; t [{TOOL}="echo ran >> trace; test -f ok"];', "a", "t")


def read(path: str) -> dict[str, object]:
    return json.loads(Path(path, "checkpoint.json").read_text())


@pytest.fixture
def failed(cli: Cli) -> Cli:
    Path("x.dot").write_text(TEXT)
    assert cli("run", "x.dot", "--simulate", "--logs", "D").code != 0
    Path("ok").touch()
    return cli


@pytest.mark.covers("ATTRACTOR-CLI-02", "AT-155")
def test_a_run_of_this_store_goes_on_from_its_directory(failed: Cli) -> None:
    run = read("D")["run_id"]
    said = failed("run", "--resume", "D")
    assert said.code == 0
    assert "✓ t" in said.out
    assert "✓ a" not in said.out
    assert read("D")["run_id"] == run
    again = failed("run", "x.dot", "--resume", "D")
    assert (again.code, Path("trace").read_text()) == (0, "ran\nran\n")


@pytest.mark.covers("ATTRACTOR-CLI-02", "ATTRACTOR-DIR-06", "AT-156")
def test_a_directory_of_another_machine_goes_on_here(failed: Cli) -> None:
    shutil.copytree("D", "E")
    run = read("E")["run_id"]
    said = failed("run", "--resume", "E", "--simulate", "--store", "sqlite:other.db", "--json")
    assert said.code == 0
    assert said.json["completed_nodes"] == ["start", "a", "t", "done"]
    assert read("E")["run_id"] == said.json["id"] != run
    ended = failed("run", "--resume", "E", "--store", "sqlite:third.db")
    assert ended.code == 0
    assert "has ended: there is nothing to do" in ended.out


@pytest.mark.covers("AT-157", "ATTRACTOR-CLI-02")
def test_a_changed_file_is_refused_until_it_is_forced(failed: Cli) -> None:
    Path("y.dot").write_text(TEXT.replace("echo ran", "echo other"))
    said = failed("run", "y.dot", "--resume", "D", "--simulate")
    assert said.code != 0
    assert "stage t: tool_command differs" in said.err
    assert "--force" in said.err
    forced = failed("run", "y.dot", "--resume", "D", "--simulate", "--force")
    assert forced.code == 0
    assert Path("trace").read_text() == "ran\nother\n"


@pytest.mark.covers("ATTRACTOR-CLI-02")
def test_what_makes_no_sense_together_is_refused(failed: Cli) -> None:
    assert failed("run").code == 2
    assert "a resumed run keeps its input" in failed("run", "--resume", "D", "--input", "{}").err
    assert "cannot be read" in failed("run", "--resume", "nowhere").err
    assert "lane: this store has the run" in failed("run", "--resume", "D", "--lane", "night").err
    new = ("run", "--resume", "D", "--simulate", "--store", "sqlite:other.db")
    assert "idempotency-key: not allowed for a run that resumes" in failed(*new, "--idempotency-key", "k").err
    assert failed(*new, "--lane", "night", "--priority", "3", "--by", "user:dana").code == 0
    assert failed("runs", "--store", "sqlite:other.db", "--json").items[0]["lane"] == "night"
    Path("f.py").write_text("")
    assert "--force" in failed("run", "f.py", "--force").err


@pytest.mark.covers("ATTRACTOR-DIR-05")
def test_a_directory_is_exported_from_the_journal_alone(failed: Cli) -> None:
    run = str(read("D")["run_id"])
    before = Path("D/checkpoint.json").read_bytes()
    shutil.rmtree("D")
    said = failed("export", "--attractor", run, "-o", "again", "--json")
    assert said.code == 0
    assert "a/response.md" in said.json["files"]
    assert Path("again/checkpoint.json").read_bytes() == before
    assert failed("run", "--resume", "again").code == 0
    assert "cannot be written to stdout" in failed("export", "--attractor", run, "-o", "-").err


@pytest.mark.covers("CP2-R9", "CP2-D3")
def test_simulated_run_continues_on_another_store_without_being_told_again(cli: Cli) -> None:
    Path("x.dot").write_text(line('a; t [shape=parallelogram, tool_command="test -e go"]; b;', "a", "t", "b"))
    assert cli("run", "x.dot", "--simulate", "--logs", "out").code == 1
    Path("go").touch()
    said = cli("run", "--resume", "out", "--store", "sqlite:other.db")
    assert said.code == 0, said.err
    assert "[Simulated]" in Path("out/b/response.md").read_text()
