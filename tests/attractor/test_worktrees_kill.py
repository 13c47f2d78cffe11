"""The worker is killed at each call of git, before it or after it: the same commits come out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attractor.kill import Place, finished, place
from tests.attractor.repositories import files, git, made, refs

__all__ = ["place"]

TOOL = "shape=parallelogram, tool_command"
# Each command adds to a ledger outside of the repository: how often it ran.
PIPELINE = f"""digraph work {{ start; end; graph [workdir="repo"]
    fan [shape=component, workspace=worktree, max_parallel=1]; join [shape=tripleoctagon]
    a [{TOOL}="echo a >>$ATTRACTOR_LOGS_ROOT/../trace; echo a >>a.txt"]
    a2 [{TOOL}="echo a2 >>$ATTRACTOR_LOGS_ROOT/../trace; cat a.txt >>a.txt.copy"]
    b [{TOOL}="echo b >>$ATTRACTOR_LOGS_ROOT/../trace; echo b >>b.txt"]
    last [{TOOL}="echo last >>$ATTRACTOR_LOGS_ROOT/../trace; cat a.txt b.txt >>all.txt"]
    start -> fan; fan -> a -> a2 -> join; fan -> b -> join; join -> last -> end }}"""
# Kills its parent, the worker, at the call whose number is in `at`: before the real git runs, or after it.
FAKE = """#!/bin/sh
n=$(cat "{0}/calls" 2>/dev/null || echo 0); n=$((n + 1)); echo $n >"{0}/calls"
if [ -e "{0}/before" ] && [ "$(cat "{0}/before")" = $n ]; then rm "{0}/before"; kill -9 $PPID; exit 1; fi
if [ -e "{0}/after" ] && [ "$(cat "{0}/after")" = $n ]; then
    rm "{0}/after"; "{1}" "$@" >/dev/null 2>&1; kill -9 $PPID; exit 1
fi
exec "{1}" "$@"
"""
DATE = "1790000000"


def prepared(where: Place) -> Path:
    repo = made(where.folder / "repo")
    (repo / "base.txt").write_text("changed\n")
    (repo / "new.txt").write_text("new\n")
    programs = where.folder / "bin"
    programs.mkdir()
    real = shutil.which("git")
    assert real is not None
    (programs / "git").write_text(FAKE.format(where.folder, real))
    (programs / "git").chmod(0o755)
    where.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    return repo


def trees(repo: Path, run: str) -> dict[str, list[str]]:
    """The history of each ref: what was committed, and with which files."""
    return {
        name: git(repo, "log", "--topo-order", "--format=%s %T", commit).splitlines()
        for name, commit in refs(repo, run).items()
    }


def peace(make: Callable[[str], Place]) -> tuple[int, dict[str, list[str]]]:
    quiet = make(PIPELINE)
    repo = prepared(quiet)
    assert quiet.start("", "--json").end() == 0, quiet.calls[-1].told
    return int((quiet.folder / "calls").read_text()), trees(repo, quiet.run_id)


def killed(make: Callable[[str], Place], when: str, number: int, expected: dict[str, list[str]]) -> None:
    where = make(PIPELINE)
    repo = prepared(where)
    (where.folder / when).write_text(str(number))
    code = where.start().end()
    assert code in (0, -9), (when, number, where.calls[-1].told)
    before = refs(repo, where.run_id)
    if where.call("show", where.run_id).end() != 0:
        # Killed before it was created.
        assert not before
        assert where.start("", "--json").end() == 0
        return
    end = finished(where)
    assert end.status == "completed", (when, number, where.calls[-1].told)
    assert dict(end.effects) == {"a": 1, "a2": 1, "b": 1, "last": 1}, (when, number)
    after = refs(repo, where.run_id)
    # What was committed before the kill is committed again with the same id.
    again = {name: commit for name, commit in before.items() if name != "result"}
    for name, commit in again.items():
        git(repo, "merge-base", "--is-ancestor", commit, after[name])
    assert trees(repo, where.run_id) == expected, (when, number)
    assert files(repo, after["result"])["all.txt"] == "a\nb"
    assert (repo / "base.txt").read_text() == "changed\n"
    assert git(repo, "status", "--porcelain").splitlines() == ["M base.txt", "?? new.txt"]
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1


@pytest.mark.covers("CP2-G3", "CP2-G5")
def test_worker_killed_at_a_git_call_resumes_to_the_same_commits(place: Callable[[str], Place]) -> None:
    """A few calls; all of them in the soak."""
    calls, expected = peace(place)
    assert calls > 30
    for when, number in (("after", calls // 2), ("before", calls - 3)):
        killed(place, when, number, expected)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.covers("CP2-G5")
@pytest.mark.parametrize("when", ["before", "after"])
def test_worker_killed_at_every_git_call_resumes_to_the_same_commits(
    place: Callable[[str], Place], when: str
) -> None:
    calls, expected = peace(place)
    for number in range(1, calls + 1):
        killed(place, when, number, expected)
