"""`holdfast skills`, `holdfast deployments`, `holdfast evidence`, and runs under a deployment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli, given, logs, refund
from tests.deadlines import HANG

__all__ = ["cli", "logs", "refund"]

SCRIPT = Path(__file__).parents[3] / "tools" / "verify_evidence.py"
SKILL = """
name = "refunds"
version = "1.0.0"
instructions = "Be kind."
description = "How to refund."
tools = ["look_up", {name = "pay", settings = {limit = 100}}]
"""


@pytest.fixture
def skill(tmp_path: Path) -> str:
    (tmp_path / "refunds.toml").write_text(SKILL)
    return "refunds.toml"


@pytest.mark.covers("HOLD-SKILL-01")
def test_a_skill_is_published_listed_shown_and_yanked(cli: Cli, skill: str, tmp_path: Path) -> None:
    (tmp_path / "strict.md").write_text("Be strict.\n")

    first = cli("skills", "publish", skill, "--by", "user:dana@acme")
    again = cli("skills", "publish", skill)
    second = cli(
        "skills", "publish", "strict.md", "--name", "refunds", "--version", "1.1.0", "--tool", "pay", "--json"
    )
    taken = cli("skills", "publish", "strict.md", "--name", "refunds", "--version", "1.0.0")
    listed = cli("skills", "list")
    newest = cli("skills", "show", "refunds")
    yanked = cli("skills", "yank", "refunds@1.1.0", "--reason", "too strict")
    then = cli("skills", "show", "refunds@^1", "--json")
    kept = cli("skills", "show", "refunds@1.1.0")
    back = cli("skills", "yank", "refunds@1.1.0", "--undo", "--json")

    assert (first.code, again.code, second.code) == (0, 0, 0)
    assert first.out.startswith("Published refunds@1.0.0, sha256:")
    assert [tool["name"] for tool in second.json["tools"]] == ["pay"]
    assert taken.code == 2
    assert "published already, with different content" in taken.err
    assert "user:dana@acme" in listed.out
    assert "How to refund." in listed.out
    assert "refunds@1.1.0" in newest.out
    assert "Be strict." in newest.out
    assert "no new run gets it" in yanked.out
    assert then.json["version"] == "1.0.0"
    assert "too strict" in kept.out
    assert back.json["yanked_at"] is None


def test_a_skill_file_that_makes_no_sense_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("name = ")
    (tmp_path / "odd.json").write_text('{"name": "x", "version": "1.0.0", "colour": "red"}')
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "bare.md").write_text("Be kind.")

    assert "bad.toml cannot be read" in cli("skills", "publish", "bad.toml").err
    assert "odd.json has unknown fields: colour." in cli("skills", "publish", "odd.json").err
    assert "list.json cannot be read" in cli("skills", "publish", "list.json").err
    assert "has no name and version. Give --name and --version." in cli("skills", "publish", "bare.md").err
    assert cli("skills", "publish", "nowhere.md").code == 2
    assert cli("skills", "list").code == 4


def test_a_skill_that_is_not_there_is_reported(cli: Cli, skill: str) -> None:
    cli("skills", "publish", skill)

    assert (
        "skill refunds@9.0.0 does not exist; known versions: 1.0.0."
        in cli("skills", "show", "refunds@9.0.0").err
    )
    assert "does not name one version" in cli("skills", "yank", "refunds").err
    assert cli("skills", "list", "other").out == "No skills.\n"


@pytest.mark.covers("HOLD-SKILL-02")
def test_a_deployment_is_made_shown_delegated_and_taken_back(cli: Cli, skill: str) -> None:
    cli("skills", "publish", skill)

    made = cli(
        "deployments", "create", "desk", "--flow", "refund", "--skill", "refunds@^1",
        "--assignee", "group:desk", "--timeout", "2d", "--on-timeout", "cancel",
    )  # fmt: skip
    given_to = cli("deployments", "delegate", "desk", "user:dana@acme", "--until", "30d")
    listed = cli("deployments", "list")
    shown = cli("deployments", "show", "desk")
    revoked = cli("deployments", "revoke", "desk", "--json")

    assert [made.code, given_to.code, listed.code, shown.code, revoked.code] == [0] * 5
    assert "desk works on behalf of user:dana@acme." in given_to.out
    assert "user:dana@acme until" in listed.out
    assert "refunds@^1 (now 1.0.0)" in shown.out
    assert "2d then cancel" in shown.out
    assert revoked.json["delegation"]["revoked"] is True
    assert "user:dana@acme (revoked)" in cli("deployments", "list").out
    assert cli("deployments", "show", "other").code == 2
    assert (
        "skill nothing@latest does not exist"
        in cli("deployments", "create", "x", "--flow", "f", "--skill", "nothing").err
    )


@pytest.mark.covers("HOLD-SKILL-02", "HOLD-AUDIT-03", "CP-3")
def test_a_run_under_a_deployment_is_decided_and_proven(
    cli: Cli, skill: str, refund: str, tmp_path: Path
) -> None:
    cli("skills", "publish", skill)
    cli("deployments", "create", "desk", "--flow", "refund", "--skill", "refunds", "--mode", "entity")

    unnamed = cli("run", refund, "--input", given(250), "--deployment", "desk")
    run = cli("run", refund, "--input", given(250), "--deployment", "desk", "--instance-key", "c-9", "--json")
    hold = run.json["holds"][0]["id"]
    shown = cli("show", run.json["id"])
    cli("answer", hold, "approve", "--by", "user:dana@acme", "--resume")
    (tmp_path / "audit.key").write_text("0123456789abcdef0123456789abcdef\n")
    proof = cli("evidence", hold, "-o", "case.json", "--page", "case.html", "--key", "audit.key")
    page = cli("evidence", run.json["id"], "--page", "case.md", "--short", "--json")
    out = cli("evidence", hold, "-o", "-")

    assert unnamed.code == 2
    assert "this one names none" in unnamed.err
    assert run.code == 3
    assert ["deployment", "desk"] in [line.split() for line in shown.out.splitlines()]
    assert ["entity", "c-9"] in [line.split() for line in shown.out.splitlines()]
    assert f"The evidence of hold {hold} is in case.json" in proof.out
    assert page.json["file"] == f"{hold}.evidence.json"
    for file, more in (("case.json", ["--key", "audit.key"]), (page.json["file"], [])):
        command = [sys.executable, "-I", str(SCRIPT), file, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 0, done.stdout
        assert "'approve' by user:dana@acme" in done.stdout
    content = json.loads(out.out)["content"]
    assert content["hold"]["instance_key"] == "c-9"
    digest = json.loads((tmp_path / "case.json").read_text())["digest"]
    html, text = (tmp_path / "case.html").read_text(), (tmp_path / "case.md").read_text()
    assert digest in html
    for page_text in (html, text):
        assert "Refund 250?" in page_text
        assert "refunds@1.0.0" in page_text
        assert "user:dana@acme" in page_text


def test_evidence_that_cannot_be_had_is_reported(cli: Cli, skill: str) -> None:
    cli("skills", "publish", skill)

    assert "'x' is neither a hold nor a run" in cli("evidence", "x").err
    assert "--out - and --json both write to stdout" in cli("evidence", "x", "-o", "-", "--json").err
    assert "none.key cannot be read" in cli("evidence", "x", "--key", "none.key").err
