"""A run with worktrees continues on another store, in another clone, from its directory alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor.runner import Runner
from holdfast.errors import RequirementsMissingError
from tests.attractor.repositories import files, git, made, refs, state
from tests.attractor.run import dot, until
from tests.attractor.test_continue_elsewhere import HELD, TOOL, left_running, ran
from tests.attractor.test_resume_directory import elsewhere

__all__ = ["elsewhere"]
pytestmark = pytest.mark.anyio


def stage(name: str, does: str, before: str = "") -> str:
    return f'{name} [{TOOL}="echo {name} >> $ATTRACTOR_LOGS_ROOT/ran; {before}{does}"];'


def source(ask: str = "", held: str = "") -> str:
    gate = 'ask [shape=hexagon, label="Go on?"];' if ask else ""
    way = "join -> ask; ask -> last [label=Yes]; last" if ask else "join -> last"
    return dot(
        "fan [shape=component, workspace=worktree, max_parallel=1]; join [shape=tripleoctagon];"
        + stage("a", "cat base.txt new.txt > a.txt")
        + stage("a2", "cat a.txt a.txt > a2.txt", held)
        + stage("b", "cat new.txt > b.txt")
        + stage("last", "cat a2.txt b.txt; pwd")
        + gate,
        f"start -> fan; fan -> a -> a2 -> join; fan -> b -> join; {way} -> done",
    )


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """With work that is not committed, and so in no clone."""
    repo = made(tmp_path / "repo")
    git(repo, "clone", "--quiet", str(repo), str(tmp_path / "clone"))
    (repo / "new.txt").write_text("new\n")
    return repo


def moved_from(logs: Path) -> Path:
    """Another machine: only the files of the directory are there."""
    moved = logs.with_name("moved")
    shutil.copytree(logs, moved, symlinks=True)
    for path in moved.rglob("intent.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "host": "another", "boot_id": "x"}))
    return moved


@pytest.mark.covers("CP2-D5")
async def test_run_that_waits_continues_in_another_clone(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, logs = tmp_path / "clone", tmp_path / "logs"
    monkeypatch.chdir(repo)
    first = await Runner(hf, logs_root=logs).run(source(ask="yes"))
    assert first.status == "waiting"
    assert sorted(path.parent.name for path in logs.glob("branches/*/branch.bundle")) == [
        "fan.1[0]",
        "fan.1[1]",
    ]
    assert "program:git" in json.loads((logs / "document.json").read_text())["requires"]
    merged = refs(repo)["result"]
    moved = moved_from(logs)
    shutil.rmtree(repo)
    monkeypatch.chdir(clone)
    before = state(clone)
    other = Runner(elsewhere)
    second = await other.resume(moved)
    await (await elsewhere.service()).answer(second.holds[0].id, "Yes")
    ended = await other.resume(second.run_id)
    assert ended.succeeded, ended.outcome
    text = ["one", "new", "one", "new", "new", str(moved / "worktrees/result")]
    assert ended.context["tool.output"].split() == text
    assert ran(moved) == ["a", "a2", "b", "last"]
    assert git(clone, "rev-parse", f"{refs(clone)['result']}^") == merged
    assert state(clone) == before


@pytest.mark.covers("CP2-D5", "CP2-D3")
async def test_command_that_ended_keeps_its_files_in_another_clone(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is gone before it has settled the stage, and before the other branch has begun."""
    clone, logs = tmp_path / "clone", tmp_path / "logs"
    monkeypatch.chdir(repo)
    await left_running(Runner(hf, logs_root=logs), source(held=HELD), lambda: ran(logs) == ["a", "a2"])
    (logs / "go").touch()
    await until(lambda: list(logs.glob("a2/tool-*/exit_code")))
    moved = moved_from(logs)
    shutil.rmtree(repo)
    shutil.rmtree(logs)
    monkeypatch.chdir(clone)
    ended = await Runner(elsewhere).resume(moved)
    assert ended.succeeded, ended.outcome
    assert ended.context["tool.output"].split()[:5] == ["one", "new", "one", "new", "new"]
    assert ran(moved) == ["a", "a2", "b", "last"]
    assert set(files(clone, refs(clone)["result"])) == {"a.txt", "a2.txt", "b.txt", "base.txt", "new.txt"}
    subjects = git(clone, "log", "--format=%s", refs(clone)["branches/fan.1.0"]).splitlines()
    assert subjects == ["a2: success", "a: success", "The work in progress", "first"]


async def test_run_waits_for_a_clone_with_its_commits(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    monkeypatch.chdir(repo)
    first = await Runner(hf, logs_root=logs).run(source(ask="yes"))
    assert first.status == "waiting"
    other = made(tmp_path / "other", **{"else.txt": "x\n"})
    moved = moved_from(logs)
    monkeypatch.chdir(other)
    runner = Runner(elsewhere)
    second = await runner.resume(moved)
    await (await elsewhere.service()).answer(second.holds[0].id, "Yes")
    with pytest.raises(RequirementsMissingError, match=f"commit {refs(repo)['result'][:12]}"):
        await runner.resume(second.run_id)
    assert ran(moved) == ["a", "a2", "b"]
    git(other, "fetch", "--quiet", str(repo), "main")
    assert (await runner.resume(second.run_id)).succeeded
    assert ran(moved) == ["a", "a2", "b", "last"]
