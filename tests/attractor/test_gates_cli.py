"""Gates at the command line: asked here, or decided later by other commands while nothing runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attractor.run import dot
from tests.cli.conftest import Cli, cli, logs

__all__ = ["cli", "logs"]

GATED = dot(
    'gate [shape=hexagon, label="Ship?"]; fix [label=Fix];',
    'start -> gate; gate -> done [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; fix -> done',
)


@pytest.fixture
def file() -> str:
    Path("x.dot").write_text(GATED)
    return "x.dot"


@pytest.mark.covers("ATTRACTOR-GATE-03", "AT-168")
def test_questions_are_put_to_a_caller_who_sits_here(cli: Cli, file: str) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", file, "--simulate", "--ask"],
        input="what?\nF\n", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "[?] Ship?\n  [A] [A] Approve\n  [F] [F] Fix\nSelect: " in said.stderr
    assert "'what?' is not one of the answers." in said.stderr
    assert "✓ fix" in said.stdout
    assert "interviewer:console" in cli("audit", "list").out


@pytest.mark.parametrize("other", ["--auto-approve", "--watch", "--detach"])
def test_only_one_way_to_answer_is_taken(cli: Cli, file: str, other: str) -> None:
    said = cli("run", file, "--simulate", "--ask", other)
    assert (said.code, other in said.err) == (2, True)


@pytest.mark.covers("ATTRACTOR-GATE-02", "ATTRACTOR-PROOF-09")
def test_a_gate_is_decided_by_a_command_while_nothing_runs_and_a_worker_goes_on(cli: Cli, file: str) -> None:
    run = cli("run", file, "--simulate", "--json").json["id"]
    listed = cli("holds", "list")
    assert "Ship?" in listed.out
    refused = cli("answer", run, "perhaps")
    assert (refused.code, "Choose one of: A, F" in refused.err) == (2, True)
    assert cli("answer", run, "F", "--by", "user:dana").code == 0
    assert cli("answer", run, "A").code != 0
    assert cli("worker", "--until-idle").code == 0
    assert "completed" in cli("show", run).out
