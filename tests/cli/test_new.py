"""`holdfast new`: what it writes runs, and its tests pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.deadlines import HANG

STATUS = {"approval": 3, "agent": 3, "map": 0}


def _in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "PYTEST", "ANTHROPIC"))}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder, env=clean, capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip


@pytest.mark.covers("TOOL-CLI-20")
@pytest.mark.parametrize("template", ["approval", "agent", "map"])
def test_new_project_runs_and_its_tests_pass_as_it_is(cli: Cli, tmp_path: Path, template: str) -> None:
    said = cli("new", "sea-flows", "--template", template, "--json")
    assert said.code == 0, said.err
    folder = tmp_path / "sea-flows"
    assert sorted(said.json["files"]) == sorted(path.name for path in folder.iterdir())
    assert {"pyproject.toml", "README.md", "sea_flows.py", "test_sea_flows.py", "conftest.py"} <= set(
        said.json["files"]
    )
    assert not any("@" in path.read_text().replace("@flow", "").replace("@tool", "").replace("@dataclass", "")
                   for path in folder.iterdir())  # fmt: skip
    tests = _in(
        folder,
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "-p",
        "no:schemathesis",
        "-p",
        "no:langsmith_plugin",
    )
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert said.json["run"] in (folder / "README.md").read_text()
    given = (
        ["--input", json.dumps({"id": "E-17", "who": "Ada", "amount": 250})] if template == "approval" else []
    )
    ran = _in(folder, "holdfast", "run", "sea_flows.py", "--json", *given)
    assert ran.returncode == STATUS[template], ran.stderr
    assert json.loads(ran.stdout)["status"] in ("completed", "pending_input")


@pytest.mark.covers("TOOL-CLI-20")
def test_new_changes_nothing_when_the_folder_is_not_empty(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "sea"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    said = cli("new", "sea")
    assert said.code == 2
    assert "Nothing was changed" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["sea"]
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


def test_new_fills_an_empty_folder_and_refuses_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "sea").mkdir()
    (tmp_path / "rock").write_text("")
    assert cli("new", "sea").code == 0
    assert (tmp_path / "sea" / "sea.py").exists()
    assert cli("new", "rock").code == 2


@pytest.mark.parametrize(
    "name", ["", "1st", "a b", "../up", "x/y", "json", "class", "holdfast", "a" * 65, "-x"]
)
def test_new_refuses_a_name_that_python_could_not_use(cli: Cli, tmp_path: Path, name: str) -> None:
    said = cli("new", "--", name)
    assert said.code == 2, said.out
    assert list(tmp_path.iterdir()) == []


def test_new_names_the_templates_when_there_is_none_of_that_name(cli: Cli) -> None:
    said = cli("new", "sea", "--template", "opera")
    assert said.code == 2
    assert "approval, agent, map" in said.err


def test_new_leaves_nothing_when_it_cannot_write(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    def full(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert cli("new", "sea").code != 0
    assert list(tmp_path.iterdir()) == []
