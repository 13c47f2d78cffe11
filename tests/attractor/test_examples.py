"""The pipelines among the examples run as they are, and Graphviz reads them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli, logs
from tests.deadlines import HANG

__all__ = ["cli", "logs"]

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.dot"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_is_strict_and_listed(cli: Cli, file: Path) -> None:
    said = cli("validate", str(file), "--strict")
    assert said.code == 0, said.out + said.err
    assert "warning" not in said.out
    assert f"[{file.name}]({file.name})" in (EXAMPLES / "README.md").read_text()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_graphviz_reads_an_example(file: Path) -> None:
    done = subprocess.run(["dot", "-Tsvg", str(file)], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr


def test_a_release_is_fixed_asked_about_and_published(cli: Cli) -> None:
    run_id = cli("run", str(EXAMPLES / "release.dot"), "--json").json["id"]
    assert cli("answer", run_id, "P").code == 0
    ended = cli("resume", run_id, "--json").json
    assert ended["completed_nodes"] == [
        "start", "build", "test", "green", "fix", "test", "green", "ask", "publish", "exit"
    ]  # fmt: skip
    assert ended["state"]["tool.last_line"] == "published 1.4.2"


def test_a_review_is_simulated(cli: Cli) -> None:
    ended = cli("run", str(EXAMPLES / "review.dot"), "--simulate", "--json").json
    assert ended["status"] == "completed"
    assert ended["completed_nodes"] == ["start", "read", "fan", "best", "verdict", "report", "exit"]
    assert len(ended["state"]["parallel.results"]) == 3
