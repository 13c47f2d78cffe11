"""The folders of worktrees: added, adopted after a move, and removed with what git keeps about them."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from holdfast.attractor.git import GitCommandError, Repository
from holdfast.attractor.run_files import make_private, write_or_raise

FOLDER: Final = "worktrees"
LOCK: Final = "holdfast-worktrees.lock"
"""In the folder that worktrees share."""
INDEX: Final = "holdfast-index"
"""In the folder that git keeps for a worktree: the index of a commit that is being made."""
_GITDIR: Final = "gitdir: "
_ATTEMPTS: Final = 5


def add_folder(repository: Repository, path: Path, commit: str) -> None:
    """Under another name first: a folder with its name is complete."""
    fresh = path.with_name(f".{path.name}.new")
    remove_worktree(fresh)
    make_private(fresh.parent)
    # Ignored by a repository around it, so that `git add --all` there does not take it.
    write_or_raise(fresh.parent / ".gitignore", "*\n")
    _add(repository, fresh, commit)
    fresh.rename(path)
    _link(path, admin_folder(path))


def adopt_folder(repository: Repository, path: Path, commit: str) -> None:
    """A directory may have been moved, or copied to another machine, with its worktrees."""
    admin = _admin_or_none(path)
    if admin is not None:
        with suppress(OSError):
            linked = Path((admin / "gitdir").read_text("utf-8", "surrogateescape").strip())
            if linked == path / ".git":
                return
            if not linked.exists():
                _link(path, admin)
                return
    fresh = path.with_name(f".{path.name}.link")
    remove_worktree(fresh)
    _add(repository, fresh, commit, "--no-checkout")
    admin = admin_folder(fresh)
    (fresh / ".git").replace(path / ".git")
    _link(path, admin)
    fresh.rmdir()


def _add(repository: Repository, fresh: Path, commit: str, *words: str) -> None:
    """Git reads what it keeps about all worktrees, and fails at one that is just being added or removed."""
    with alone(repository.common):
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                # Whole, also if the user's is a sparse checkout: a stage sees what others made anywhere.
                whole = ("-c", "core.sparseCheckout=false")
                repository.git(
                    *whole, "worktree", "add", "--detach", "--quiet", "--force", *words, str(fresh), commit
                )
            # The lock stops no other programs: a person, or an agent in its worktree, may add theirs.
            except GitCommandError:
                _remove(fresh)
                if attempt == _ATTEMPTS:
                    raise
            else:
                return


@contextmanager
def alone(folder: Path) -> Generator[None]:
    """While no other process or thread changes the worktrees in a folder, or what git keeps there about all
    of a repository."""
    with ExitStack() as held:
        # On a file system without locks it is only tried again.
        with suppress(OSError):
            fcntl.flock(held.enter_context((folder / LOCK).open("ab")), fcntl.LOCK_EX)
        yield


def _link(path: Path, admin: Path) -> None:
    write_or_raise(admin / "gitdir", f"{path / '.git'}\n")


def _admin_or_none(path: Path) -> Path | None:
    """The folder of the repository that git keeps for a worktree."""
    try:
        text = (path / ".git").read_text("utf-8", "surrogateescape")
    except OSError:
        return None
    admin = Path(text.removeprefix(_GITDIR).removesuffix("\n"))
    is_one = text.startswith(_GITDIR) and admin.parent.name == "worktrees" and (admin / "gitdir").is_file()
    return admin if is_one else None


def is_worktree(path: Path) -> bool:
    return _admin_or_none(path) is not None


def admin_folder(path: Path) -> Path:
    found = _admin_or_none(path)
    if found is None:
        raise GitCommandError(f"{path} is not a worktree any more: its .git file was changed")
    return found


def remove_worktree(path: Path) -> None:
    """With what the repository keeps about it."""
    admin = _admin_or_none(path)
    if admin is None:
        shutil.rmtree(path, ignore_errors=True)
        return
    with alone(admin.parent.parent):
        _remove(path)


def _remove(path: Path) -> None:
    admin = _admin_or_none(path)
    if admin is not None:
        with suppress(OSError):
            linked = (admin / "gitdir").read_text("utf-8", "surrogateescape").strip()
            # Of a copy the original may be in use.
            if linked == str(path / ".git"):
                shutil.rmtree(admin, ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


def remove_worktrees(root: Path) -> None:
    """Of a run that has completed: its commits are in its refs. Those with other files stay."""
    for folder in (root / FOLDER, *root.glob(f"restart-*/{FOLDER}")):
        if folder.is_dir():
            paths = [path for path in folder.resolve().iterdir() if path.is_dir()]
            kept = [path for path in paths if not is_committed(path)]
            for path in paths:
                if path not in kept:
                    remove_worktree(path)
            if not kept:
                shutil.rmtree(folder, ignore_errors=True)


def is_committed(path: Path) -> bool:
    """Whether all stages that worked in this worktree have their commits. If not, its files are nowhere
    else: the last commit failed, or its `.git` was changed."""
    if path.name.startswith("."):
        # Not complete: no stage has worked there.
        return True
    admin = _admin_or_none(path)
    return admin is not None and not (admin / INDEX).exists()


def point_to(repository: Repository, path: Path, commit: str) -> None:
    """HEAD and index of a worktree; its files stay."""
    admin = admin_folder(path)
    index = admin / INDEX
    for lock in (admin / f"{INDEX}.lock", admin / "HEAD.lock"):
        lock.unlink(missing_ok=True)
    repository.git("read-tree", commit, at=path, index=index)
    repository.git("update-ref", "--no-deref", "HEAD", commit, at=path)
    index.replace(admin / "index")
