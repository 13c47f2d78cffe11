"""Refs and worktrees of pipelines that have ended are removed, but no work that is nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attractor.repositories import git, made, refs, state
from tests.cli.conftest import Cli

pytestmark = pytest.mark.covers("CP2-G2")

TOOL = "shape=parallelogram, tool_command"
FAN = "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; start; exit"


def failed(cli: Cli, first: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository of a run that has failed behind its merge."""
    repo = made(Path("repo").resolve())
    (repo / ".git" / "info" / "exclude").write_text(".holdfast\nlogs\n*.dot\n")
    monkeypatch.chdir(repo)
    Path("x.dot").write_text(f"""digraph x {{ graph [goal=g]; {FAN}
        a [{TOOL}="{first}"]; b [{TOOL}="true"]; t [{TOOL}="exit 1"]
        start -> fan; fan -> a -> join; fan -> b -> join; join -> t -> exit }}""")
    assert cli("run", "x.dot", "--logs", "logs").code != 0
    assert refs(repo)
    assert "logs/worktrees" in git(repo, "worktree", "list")
    return repo


def test_what_a_failed_run_left_is_removed_if_nothing_is_lost(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = failed(cli, "true", monkeypatch)
    before = state(repo)[:4]  # branch, refs, status and index of the user
    assert "would be deleted" in cli("prune", "--worktrees", "--dry-run").out
    assert refs(repo)
    said = cli("prune", "--worktrees")
    assert (said.code, "worktrees deleted." in said.out) == (0, True), said
    assert refs(repo) == {}
    assert "logs" not in git(repo, "worktree", "list")
    assert state(repo)[:4] == before
    assert "No pipeline has left" in cli("prune", "--worktrees").out


def test_work_that_is_on_no_branch_is_kept_until_it_is_merged_or_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = failed(cli, "echo more >more.txt", monkeypatch)
    kept = cli("prune", "--worktrees")
    assert "unmerged commits" in kept.out
    assert "--unmerged" in kept.out
    assert cli("prune", "--worktrees", "--unmerged").code == 2  # of which run?
    found = refs(repo)
    assert found
    git(repo, "merge", "--quiet", found["result"])
    (repo / "logs" / "worktrees" / "result" / "notes.txt").write_text("of a person\n")
    assert "1 changed files in worktrees" in cli("prune", "--worktrees").out
    assert refs(repo) == found
    run = git(repo, "for-each-ref", "--format=%(refname)", "refs/holdfast").split("/")[2]
    assert "deleted" in cli("prune", run, "--worktrees", "--unmerged").out
    assert refs(repo) == {}
    assert not (repo / "logs" / "worktrees" / "result").exists()


def test_what_a_waiting_or_unknown_run_has_is_kept(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = failed(cli, "true", monkeypatch)
    git(repo, "update-ref", "refs/holdfast/11111111-1111-1111-1111-111111111111/result", "HEAD")
    assert "this store does not have the run" in cli("prune", "--worktrees").out
    assert list(refs(repo)) == ["result"]


def test_run_is_named_by_what_no_other_begins_with(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = failed(cli, "echo more >more.txt", monkeypatch)
    run = git(repo, "for-each-ref", "--format=%(refname)", "refs/holdfast").split("/")[2]
    git(repo, "update-ref", f"refs/holdfast/{run[:-2]}zz/result", "HEAD")
    said = cli("prune", run[:8], "--worktrees", "--unmerged")
    assert (said.code, "the beginning of 2 run ids" in said.err) == (2, True), said
    said = cli("prune", "nothing", "--worktrees", "--unmerged")
    assert (said.code, "no run 'nothing'" in said.err) == (2, True), said
    assert len(git(repo, "for-each-ref", "--format=%(refname)", "refs/holdfast").split()) > 1


def test_a_worktree_that_is_none_any_more_is_kept_and_hinders_no_other(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage removed its `.git`, so that nothing it made is in a commit."""
    repo = failed(cli, "echo work >work.txt; rm .git", monkeypatch)
    left = repo / "logs/worktrees/fan.1[0]"
    git(repo, "merge", "--quiet", refs(repo)["result"])
    said = cli("prune", "--worktrees")
    assert (said.code, "2 changed files in worktrees" in said.out) == (0, True), said
    assert (left / "work.txt").exists()
    run = git(repo, "for-each-ref", "--format=%(refname)", "refs/holdfast").split("/")[2]
    assert "deleted" in cli("prune", run, "--worktrees", "--unmerged").out
    assert not left.exists()
    assert "No pipeline has left" in cli("prune", "--worktrees").out
