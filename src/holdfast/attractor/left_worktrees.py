"""What runs left in a repository: their refs and worktrees. They are removed if no work is lost with them:
every commit is on a branch or changes nothing, and no file of a worktree is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from holdfast.attractor.directory_owner import read_owner
from holdfast.attractor.git import Repository
from holdfast.attractor.worktree_folders import FOLDER, is_worktree, remove_worktree

_REFS: Final = "refs/holdfast/"
_BRANCHES: Final = ("--branches", "--tags", "--remotes")


class LeftWork(msgspec.Struct, frozen=True, kw_only=True):
    """Of one run. `unmerged`: commits with files that no branch has. `changed`: files of worktrees with work
    that is in no commit."""

    run: str
    refs: dict[str, str] = {}
    worktrees: tuple[str, ...] = ()
    unmerged: int = 0
    changed: int = 0

    @property
    def is_safe(self) -> bool:
        return not self.unmerged and not self.changed


def left_work(repository: Repository) -> list[LeftWork]:
    """By run. Raises GitCommandError."""
    refs: dict[str, dict[str, str]] = {}
    for ref, commit in repository.refs(_REFS).items():
        refs.setdefault(ref.removeprefix(_REFS).partition("/")[0], {})[ref] = commit
    folders = _worktrees(repository)
    known = set(repository.git("log", "--format=%T", *_BRANCHES).split()) if refs else set[str]()
    return [
        LeftWork(
            run=run,
            refs=refs.get(run, {}),
            worktrees=tuple(map(str, folders.get(run, ()))),
            unmerged=_unmerged(repository, set(refs.get(run, {}).values()), known),
            changed=sum(_changed(repository, path) for path in folders.get(run, ())),
        )
        for run in sorted({*refs, *folders})
    ]


def remove_left(repository: Repository, left: LeftWork) -> None:
    """Worktrees first: they need their refs. A ref that has changed since stays. Raises GitCommandError."""
    for path in left.worktrees:
        remove_worktree(Path(path))
    for ref, commit in left.refs.items():
        repository.git("update-ref", "-d", ref, commit)


def _worktrees(repository: Repository) -> dict[str, list[Path]]:
    """Those in the directory of a run, by its run."""
    found: dict[str, list[Path]] = {}
    for line in repository.git("worktree", "list", "--porcelain", "-z").split("\0"):
        kind, _, name = line.partition(" ")
        path = Path(name)
        if kind != "worktree" or path.parent.name != FOLDER or not path.is_dir():
            continue
        root = path.parent.parent
        owner = read_owner(root.parent if root.name.startswith("restart-") else root)
        if owner is not None:
            found.setdefault(owner.run, []).append(path)
    return found


def _unmerged(repository: Repository, commits: set[str], known: set[str]) -> int:
    """A commit with the files of one on a branch loses nothing: a stage that changed no file has one too."""
    if not commits:
        return 0
    trees = repository.git("log", "--format=%T", *sorted(commits), "--not", *_BRANCHES).split()
    return sum(tree not in known for tree in trees)


def _changed(repository: Repository, path: Path) -> int:
    if not is_worktree(path):
        # A stage removed its `.git`: what it has is in no commit.
        return sum(each.is_file() for each in path.rglob("*"))
    return len(repository.git("status", "--porcelain", "--untracked-files=all", at=path).splitlines())
