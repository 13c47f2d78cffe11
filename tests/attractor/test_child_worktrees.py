"""Child pipelines with worktrees: the stages after their manager have what they merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor.runner import PipelineResult, Runner
from tests.attractor.repositories import files, git, made, refs, state
from tests.attractor.run import dot

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-G4")]

TOOL = "shape=parallelogram, tool_command"
WORKTREES = "workspace=worktree"


def child(folder: Path, *, last: str = "cat x y > xy", fan: str = WORKTREES) -> str:
    """A manager of a pipeline whose branches make the files x and y."""
    path = folder / "child.dot"
    path.write_text(
        f"digraph c {{ start; exit; fan [shape=component, {fan}]; join [shape=tripleoctagon];"
        f' x [{TOOL}="echo x > x"]; y [{TOOL}="echo y > y"]; last [{TOOL}="{last}"];'
        " start -> fan; fan -> x -> join; fan -> y -> join; join -> last -> exit }"
    )
    return f'm [shape=house, stack.child_dotfile="{path}", manager.poll_interval=10ms'


def branched(manager: str, fan: str, *, after: str = "cat xy b") -> str:
    stages = (
        f"fan [shape=component{fan}]; join [shape=tripleoctagon];"
        f' {manager}]; b [{TOOL}="echo b > b"]; after [{TOOL}="{after}"];'
    )
    return dot(stages, "start -> fan; fan -> m -> join; fan -> b -> join; join -> after -> done")


async def ran(hf: Holdfast, logs: Path, source: str) -> PipelineResult:
    return await Runner(hf, logs_root=logs).run(source)


async def test_the_branch_of_a_manager_has_what_its_child_merged(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = made(tmp_path / "repo")
    monkeypatch.chdir(repo)
    before = state(repo)
    found = await ran(hf, tmp_path / "logs", branched(child(tmp_path), f", {WORKTREES}"))
    assert found.succeeded, found.outcome
    assert state(repo) == before
    assert found.context["tool.output"] == "x\ny\nb\n"
    assert set(files(repo, refs(repo, found.run_id)["result"])) == {"base.txt", "x", "y", "xy", "b"}
    # No worktree is left: neither of the run nor of its child.
    assert len(git(repo, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("kept", [False, True])
async def test_the_stages_after_a_manager_work_on_what_its_child_merged(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Also if only the child has worktrees. With `merge=none` all continue in the folder of the user."""
    repo = made(tmp_path / "repo")
    monkeypatch.chdir(repo)
    manager = child(tmp_path, last="true", fan=f"{WORKTREES}, merge={'none' if kept else 'all'}")
    stages = f'{manager}]; after [{TOOL}="ls > seen; cat seen"]; more [{TOOL}="echo more > more"];'
    found = await ran(hf, tmp_path / "logs", dot(stages, "start -> m -> after -> more -> done"))
    assert found.succeeded, found.outcome
    if kept:
        assert (repo / "more").exists()
        return
    assert git(repo, "status", "--porcelain") == ""
    assert found.context["tool.output"] == ""
    result = files(repo, refs(repo, found.run_id)["result"])
    assert result["seen"].split() == ["base.txt", "seen", "x", "y"]
    assert result["more"] == "more"


@pytest.mark.parametrize("fan", ["", f", {WORKTREES}"])
async def test_what_no_later_stage_would_have_is_a_failure(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fan: str
) -> None:
    """The branches share a folder, or one worktree."""
    repo = made(tmp_path / "repo")
    monkeypatch.chdir(repo)
    source = branched(child(tmp_path), "", after="true")
    if fan:
        source = dot(
            f"fan [shape=component{fan}]; inner [shape=component]; all [shape=tripleoctagon]; "
            f"{child(tmp_path)}]; b [{TOOL}=true]; c [{TOOL}=true]; join [shape=tripleoctagon];",
            "start -> fan; fan -> inner; inner -> m -> all; inner -> c -> all; all -> join; "
            "fan -> b -> join; join -> done",
        )
    await ran(hf, tmp_path / "logs", source)
    status = next((tmp_path / "logs").rglob("m/status.json")).read_text()
    assert "which no later stage would have" in status
    assert "set workspace=worktree on its fan-out" in status


async def test_a_detached_child_is_refused_in_a_worktree(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder would be removed while it works."""
    repo = made(tmp_path / "repo")
    monkeypatch.chdir(repo)
    manager = f"{child(tmp_path)}, stack.child_detach=true"
    found = await ran(hf, tmp_path / "logs", branched(manager, f", {WORKTREES}", after="true"))
    status = next((tmp_path / "logs").rglob("m/status.json")).read_text()
    assert "the worktree in which the child would work is removed" in status
    assert refs(repo, found.run_id).keys() == {"base/fan.1", "branches/fan.1.0", "branches/fan.1.1", "result"}
