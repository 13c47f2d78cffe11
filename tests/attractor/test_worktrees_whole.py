"""No file of a stage is lost: what a sparse checkout leaves out, what git ignores although it is tracked, and
what no commit could take."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor import branch_worktree
from holdfast.attractor.branch_worktree import Worktree
from holdfast.attractor.git import Repository
from holdfast.attractor.runner import Runner
from holdfast.attractor.worktree_folders import add_folder
from holdfast.errors import InputError
from tests.attractor.repositories import files, git, made, refs, state
from tests.attractor.run import dot
from tests.attractor.test_resume_directory import elsewhere
from tests.attractor.test_worktrees import TOOL, pipeline, ran
from tests.attractor.test_worktrees_elsewhere import moved_from

__all__ = ["elsewhere"]
pytestmark = pytest.mark.anyio


def with_folders(at: Path) -> Path:
    repo = made(at)
    for name in ("src/code", "docs/page"):
        (repo / name).parent.mkdir()
        (repo / name).write_text(f"{name}\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "second")
    return repo


@pytest.mark.covers("CP2-G2")
@pytest.mark.parametrize("mode", ["--cone", "--no-cone"])
async def test_worktrees_of_a_sparse_checkout_are_whole(hf: Holdfast, tmp_path: Path, mode: str) -> None:
    repo = with_folders(tmp_path / "repo")
    git(repo, "sparse-checkout", "set", mode, "src")
    (repo / "docs").mkdir(exist_ok=True)
    (repo / "docs/draft").write_text("draft\n")
    before = state(repo)
    a = "cat docs/draft docs/page; echo new > docs/new; echo more >> docs/page"
    found = await ran(hf, tmp_path / "logs", pipeline(repo, a, "echo b > src/b", after="cat docs/new src/b"))
    assert found.succeeded, found.outcome
    assert found.context["parallel.fan_in.merged"] == ["a", "b"]
    assert found.context["tool.output"].split() == ["new", "b"]
    kept = files(repo, refs(repo, found.run_id)["result"])
    assert kept["docs/page"] == "docs/page\nmore"
    assert set(kept) == {"base.txt", "src/code", "docs/page", "docs/draft", "docs/new", "src/b"}
    assert state(repo) == before


@pytest.mark.covers("CP2-G4")
async def test_files_that_no_commit_could_take_stay_after_the_run(hf: Holdfast, tmp_path: Path) -> None:
    repo, logs = made(tmp_path / "repo"), tmp_path / "logs"
    inner = "git init -q inner; cd inner; echo work > work; git add work; git -c user.name=A -c user.email=a"
    found = await ran(hf, logs, pipeline(repo, f"{inner} commit -qm x", "echo b > b.txt"))
    assert found.succeeded
    assert found.context["parallel.results"][0]["outcome"] == "fail"
    left = logs / "worktrees/fan.1[0]"
    assert str(left) in found.context["parallel.results"][0]["failure_reason"]
    assert (left / "inner/work").read_text() == "work\n"
    assert [path.name for path in (logs / "worktrees").iterdir() if path.is_dir()] == [left.name]


async def test_tracked_files_that_git_ignores_are_kept_when_the_directory_moves(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    repo, logs = made(tmp_path / "repo", **{".gitignore": "dist/\n"}), tmp_path / "logs"
    (repo / "dist").mkdir()
    (repo / "dist/kept").write_text("kept\n")
    git(repo, "add", "--force", "dist/kept")
    git(repo, "commit", "--quiet", "--message", "second")
    source = dot(
        "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; ask [shape=hexagon];"
        f'a [{TOOL}="echo a > a.txt"]; last [{TOOL}="echo last > last.txt"]; b [{TOOL}="echo b > b.txt"];',
        "start -> fan; fan -> a -> ask; ask -> last [label=Yes]; last -> join; fan -> b -> join;join -> done",
        f'goal="ship it", workdir="{repo}"',
    )
    first = await Runner(hf, logs_root=logs).run(source)
    assert first.status == "waiting"
    # A copy: the worktrees of the original are still those that git knows.
    other = Runner(elsewhere)
    second = await other.resume(moved_from(logs))
    await (await elsewhere.service()).answer(second.holds[0].id, "Yes")
    ended = await other.resume(second.run_id)
    assert ended.succeeded, ended.outcome
    kept = files(repo, refs(repo, second.run_id)["result"])
    assert kept == {
        ".gitignore": "dist/",
        "dist/kept": "kept",
        "a.txt": "a",
        "b.txt": "b",
        "last.txt": "last",
    }


def test_own_commits_of_an_interrupted_agent_keep_what_git_ignores(tmp_path: Path) -> None:
    repo = made(tmp_path / "repo", **{".gitignore": "dist/\n"})
    repository, path = Repository.at(repo), tmp_path / "logs/worktrees/fan.1[0]"
    head = git(repo, "rev-parse", "HEAD")
    add_folder(repository, path, head)
    (path / "dist").mkdir()
    (path / "dist/forced").write_text("forced\n")
    git(path, "add", "--force", "dist/forced")
    git(path, "commit", "--quiet", "--message", "by the agent")
    workspace = Worktree(
        repository=repository, path=path, scope="fan.1[0]/", owns=True, refs="refs/holdfast/R/",
        root=tmp_path / "logs", commit=head, origin="", at=0,
    )  # fmt: skip
    # The worker that claims the run next enters the stage again.
    branch_worktree._prepare(workspace)
    assert git(path, "ls-files") == ".gitignore\ndist/forced"
    # Another history than that of the run is none of the stage's.
    other = git(path, "commit-tree", "-m", "other", f"{head}^{{tree}}")
    git(path, "update-ref", "--no-deref", "HEAD", other)
    branch_worktree._prepare(workspace)
    assert git(path, "rev-parse", "HEAD") == head


async def test_run_in_a_folder_that_git_ignores_is_refused(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo", **{".gitignore": "build/\n"})
    (repo / "build/here").mkdir(parents=True)
    with pytest.raises(InputError, match=r"git ignores .*/build/here, so that no commit would have"):
        await ran(hf, tmp_path / "logs", pipeline(repo / "build/here", "echo a > a", "true"))


CONFLICT = (
    "git checkout -q -b other; echo x > base.txt; git commit -qam x; git checkout -q --detach HEAD~1; "
    "echo y > base.txt; git commit -qam y; git merge other > said || true"
)


@pytest.mark.parametrize("then", ["left", "resolved", "deleted"])
async def test_a_stage_that_leaves_a_merge_with_conflicts_has_failed(
    hf: Holdfast, tmp_path: Path, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.com")
    monkeypatch.setenv("HOLDFAST_TOOL_ENV", "GIT_*")
    repo, logs = made(tmp_path / "repo"), tmp_path / "logs"
    ends = {"left": "true", "resolved": "echo z > base.txt", "deleted": "rm base.txt"}[then]
    found = await ran(hf, logs, pipeline(repo, f"{CONFLICT}; {ends}", "echo b > b.txt"))
    first = found.context["parallel.results"][0]
    kept = files(repo, refs(repo, found.run_id)["result"])
    if then == "left":
        assert "left a merge with conflicts" in first["failure_reason"]
        assert "<<<<<<<" in (logs / "worktrees/fan.1[0]/base.txt").read_text()
        assert kept == {"base.txt": "one", "b.txt": "b"}
    else:
        assert first["outcome"] == "success"
        assert kept.get("base.txt") == {"resolved": "z"}.get(then)


async def test_run_in_the_middle_of_a_merge_is_refused(hf: Holdfast, tmp_path: Path) -> None:
    repo = made(tmp_path / "repo")
    for name in ("left", "right"):
        git(repo, "checkout", "--quiet", "-b", name, "main")
        (repo / "base.txt").write_text(f"{name}\n")
        git(repo, "commit", "--quiet", "--all", "--message", name)
    with pytest.raises(AssertionError, match="git"):
        git(repo, "merge", "left")
    with pytest.raises(InputError, match=r"in the middle of a merge with conflicts \(base.txt\)"):
        await ran(hf, tmp_path / "logs", pipeline(repo, "true", "true"))
    (repo / "base.txt").write_text("both\n")
    assert (await ran(hf, tmp_path / "logs", pipeline(repo, "true", "true"))).succeeded
