"""Repositories for tests, and what git says about them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_CLEAN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}


def git(at: Path, *words: str, send: str | None = None) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *words],
        cwd=at,
        env={**kept, **_CLEAN},
        input=send,
        stdin=subprocess.DEVNULL if send is None else None,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )
    assert done.returncode == 0, f"git {words}: {done.stderr}"
    return done.stdout.strip()


def made(folder: Path, **files: str) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for name, text in (files or {"base.txt": "one\n"}).items():
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def refs(at: Path, run: str = "") -> dict[str, str]:
    """The refs of runs, without `refs/holdfast/RUN/`."""
    lines = git(at, "for-each-ref", "--format=%(refname) %(objectname)", "refs/holdfast/").splitlines()
    found = [line.split() for line in lines]
    return {name.split("/", 3)[3]: commit for name, commit in found if run in name}


def files(at: Path, commit: str) -> dict[str, str]:
    names = git(at, "ls-tree", "-r", "--name-only", "-z", commit).split("\0")
    return {name: git(at, "show", f"{commit}:{name}") for name in names if name}


def state(at: Path) -> tuple[str, ...]:
    """What belongs to the user: branch, index and files."""
    index = at / ".git" / "index"
    return (
        git(at, "symbolic-ref", "HEAD"),
        git(at, "for-each-ref", "refs/heads", "refs/tags", "refs/stash"),
        git(at, "status", "--porcelain", "--untracked-files=all"),
        index.read_bytes().hex(),
        *sorted(f"{path} {path.read_bytes()!r}" for path in at.rglob("*") if _is_own(at, path)),
    )


def _is_own(at: Path, path: Path) -> bool:
    return path.is_file() and path.relative_to(at).parts[0] not in (".git", ".holdfast")
