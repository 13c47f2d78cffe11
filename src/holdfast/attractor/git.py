"""git as a program, independent of the user's settings: no hooks, no signatures, no prompts, no variables of
the worker. Only its plumbing is used, so that nothing but the named refs and indexes changes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from holdfast.types.text import clean_text

PROGRAM: Final = "program:git"
"""The requirement of runs with worktrees."""
LINK_MODE: Final = "160000"
"""Of an entry that is a commit of another repository."""
OLDEST: Final = (2, 38)
"""The first version with `merge-tree --write-tree`."""
_SHOWN: Final = 500
_CONFLICTS: Final = 1
_SETTINGS: Final = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "i18n.commitEncoding": "UTF-8",
    # `Repository.at` asked git with the user's own settings whether this repository may be used.
    "safe.directory": "*",
}
_CONTENT: Final = r"^(filter\..*|core\.(autocrlf|eol))$"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")


class GitCommandError(RuntimeError):
    """git refused a command, or is not there."""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a commit: the same values give the same id."""

    tree: str
    parents: tuple[str, ...]
    message: str
    author: str
    email: str
    at: int
    """Microseconds."""


class Repository(msgspec.Struct, frozen=True):
    top: Path
    """The working tree in which the run was started."""
    common: Path
    """The folder with the objects and refs, which all worktrees share."""
    prefix: str = ""
    """The working folder, from `top`."""
    settings: tuple[tuple[str, str], ...] = ()
    """The user's own settings about the content of files: what a user never adds is not added here either,
    and files are stored as the user stores them (by a filter for large files, for example)."""

    @classmethod
    def at(cls, folder: Path) -> Repository:
        """Raises GitCommandError if the folder is not inside a working tree."""
        words = (
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--git-common-dir",
            "--show-prefix",
        )
        lines = _output(_run(words, folder, _environment(own=False))).split("\n")
        if len(lines) != 4:
            raise GitCommandError(f"the path of the repository at {folder} has a line break")
        top, common, prefix, _ = lines
        return cls(Path(top), Path(common), prefix, _content_settings(folder))

    def git(
        self,
        *words: str,
        at: Path | None = None,
        index: Path | None = None,
        send: str | None = None,
        ok: Sequence[int] = (0,),
        env: Mapping[str, str] | None = None,
    ) -> str:
        """The output of a command. `at`: the working tree, if not that of the user. Raises
        GitCommandError."""
        return _output(self.run(*words, at=at, index=index, send=send, ok=ok, env=env))

    def run(
        self,
        *words: str,
        at: Path | None = None,
        index: Path | None = None,
        send: str | None = None,
        ok: Sequence[int] = (0,),
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        known = {**_environment(own=True), **(env or {})}
        if index is not None:
            known["GIT_INDEX_FILE"] = str(index)
        pairs = (*self.settings, *_SETTINGS.items())
        settings = [word for key, value in pairs for word in ("-c", f"{key}={value}")]
        return _run((*settings, *words), at or self.top, known, send=send, ok=ok)

    def commit_at(self, name: str) -> str:
        """The id of a commit; empty if there is none of that name."""
        return self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", ok=(0, 1, 128)).strip()

    def has(self, commit: str) -> bool:
        return self.run("cat-file", "-e", f"{commit}^{{commit}}", ok=(0, 1, 128)).returncode == 0

    def refs(self, beginning: str) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(objectname) %(refname)", beginning).splitlines()
        return {ref: commit for commit, _, ref in (line.partition(" ") for line in lines)}

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Not of a commit that the repository does not have."""
        return self.run("merge-base", "--is-ancestor", commit, of, ok=(0, 1, 128)).returncode == 0

    def set_ref(self, ref: str, commit: str, *, new: bool = False) -> None:
        """`new`: only if it does not exist yet."""
        before = ("0" * len(commit),) if new else ()
        self.git("update-ref", ref, commit, *before)

    def commit(self, made: Commit) -> str:
        """The id of the commit; no ref changes."""
        parents = [word for parent in made.parents for word in ("-p", parent)]
        date = f"{made.at // 1_000_000} +0000"
        author, email = _identity(made.author) or "Holdfast", _identity(made.email)
        known = {f"GIT_{who}_{what}": value
                 for who in ("AUTHOR", "COMMITTER")
                 for what, value in (("NAME", author), ("EMAIL", email), ("DATE", date))}  # fmt: skip
        message = clean_text(made.message)
        return self.git("commit-tree", made.tree, *parents, "-F", "-", send=message, env=known).strip()

    def tree_of_files(self, top: Path, index: Path, *, without: Sequence[Path] = ()) -> str:
        """The files of a working tree, also those that are new. `index`: changed by it, a copy. `without`:
        below or outside of it."""
        inside = [path for path in without if path.is_relative_to(top) and path != top]
        # git refuses to leave out by name what it ignores anyway.
        ignored = self._ignored(top, inside)
        left = [_pathspec(path, top) for path in inside if path not in ignored]
        # Of other stores and runs in this folder: they change while they are read.
        left.append(":(exclude,top,glob)**/.holdfast/**")
        # `--sparse`: a file outside of the user's sparse checkout is work too.
        self.git("add", "--all", "--sparse", "--", ":/", *left, at=top, index=index)
        return self.git("write-tree", at=top, index=index).strip()

    def _ignored(self, top: Path, paths: Sequence[Path]) -> set[Path]:
        names = "".join(f"{path.relative_to(top)}\0" for path in paths)
        found = self.git("check-ignore", "-z", "--stdin", at=top, send=names, ok=(0, 1)) if names else ""
        return {top / name for name in found.split("\0") if name}

    def nested(self, top: Path) -> list[Path]:
        """Repositories in a working tree that are not part of it: git has a link in place of their files."""
        found = self.git("ls-files", "--others", "--exclude-standard", "-z", "--", ":/", at=top)
        # Of all others each file is listed.
        return [top / name.rstrip("/") for name in found.split("\0") if name.endswith("/")]

    def untracked(self, name: str) -> list[Path]:
        """The new files of this name, at any place in the working tree."""
        found = self.git("ls-files", "--others", "--exclude-standard", "-z", "--", f":(top,glob)**/{name}")
        return [self.top / path for path in found.split("\0") if path]

    def new_links(self, before: str, tree: str) -> list[str]:
        """Paths at which a tree has a link to a commit of another repository, and `before` has none."""
        raw = self.git("diff-tree", "-r", "--raw", "-z", "--no-renames", before, tree).split("\0")
        pairs = zip(raw[::2], raw[1::2], strict=False)
        return [path for change, path in pairs if change.split(" ")[1] == LINK_MODE]

    def unresolved(self, top: Path, index: Path | None = None) -> list[str]:
        """The files of an unfinished merge that still have its marks."""
        found = self.git("ls-files", "--unmerged", "-z", "--", ":/", at=top, index=index).split("\0")
        names = dict.fromkeys(entry.partition("\t")[2] for entry in found if entry)
        return [name for name in names if _has_marks(top / name)]

    def diff(self, before: str, after: str, *paths: str) -> str:
        words = ("diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv")
        text = self.git(*words, before, after, "--", *(f":(top,literal){path}" for path in paths))
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\0", "\ufffd")

    def merge(self, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """The tree of both, and the paths that are in conflict. Only objects are written."""
        found = self.run(
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            ours,
            theirs,
            ok=(0, _CONFLICTS),
        )
        tree, *paths = found.stdout.decode("utf-8", "surrogateescape").split("\0")
        if found.returncode != _CONFLICTS:
            return tree, ()
        return tree, tuple(dict.fromkeys(filter(None, paths)))

    def bundle(self, path: Path, refs: Sequence[str], *, without: str) -> None:
        """The commits of the refs in one file, except those that `without` already has. Replaced as a
        whole."""
        fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
        past = ("--not", without) if without else ()
        self.git("bundle", "create", "-q", str(fresh.resolve()), *refs, *past)
        fresh.replace(path)

    def take_bundle(self, path: Path) -> dict[str, str]:
        """Reads the commits of a bundle into the repository, without refs: returns its refs."""
        lines = self.git("bundle", "unbundle", str(path.resolve())).splitlines()
        return {ref: commit for commit, _, ref in (line.partition(" ") for line in lines)}


def _has_marks(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return any(line.startswith(b"<<<<<<< ") for line in file)
    except OSError:
        # Deleted, or a link or a folder in its place: that is a decision.
        return False


def _content_settings(folder: Path) -> tuple[tuple[str, str], ...]:
    """As git reads them there for the user."""
    own = _environment(own=False)
    found = _run(("config", "--null", "--get-regexp", _CONTENT), folder, own, ok=(0, 1))
    pairs = [each.partition("\n") for each in _output(found).split("\0") if each]
    # Without a value it is on.
    known = {key: value if sep else "true" for key, sep, value in pairs}
    for key in ("core.excludesfile", "core.attributesfile"):
        path = _run(("config", "--get", "--type=path", key), folder, own, ok=(0, 1))
        if text := _output(path).removesuffix("\n"):
            known[key] = text
    return tuple(known.items())


def _pathspec(path: Path, top: Path) -> str:
    return f":(exclude,top,literal){path.relative_to(top)}"


def _identity(text: str) -> str:
    """Without the characters that end a name or an address in a commit."""
    return re.sub(r"[<>\n\0]", "", clean_text(text, 100)).strip()


def _environment(*, own: bool) -> dict[str, str]:
    """`own`: without the settings of the user and the machine. None of `GIT_*` is passed on: a worker that a
    hook started would change that repository."""
    kept = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    found |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    return {**found, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull} if own else found


def _run(
    words: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    send: str | None = None,
    ok: Sequence[int] = (0,),
) -> subprocess.CompletedProcess[bytes]:
    given = b"" if send is None else send.encode("utf-8", "replace")
    try:
        done = subprocess.run(
            ["git", *words], cwd=cwd, env=dict(env), input=given, capture_output=True, check=False
        )
    except OSError as error:
        raise GitCommandError(f"git cannot be started in {cwd}: {error.strerror}") from error
    if done.returncode not in ok:
        name = next((word for word in words if not word.startswith("-") and "=" not in word), "")
        said = clean_text(done.stderr.decode("utf-8", "replace").strip(), _SHOWN)
        raise GitCommandError(f"git {name} failed in {cwd}: {said or f'exit code {done.returncode}'}")
    return done


def _output(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stdout.decode("utf-8", "surrogateescape")


def git_fault() -> str:
    """Why git cannot be used here; empty if it can."""
    path = shutil.which("git")
    wanted = ".".join(map(str, OLDEST))
    if path is None:
        return f"git is not installed here; worktrees need git {wanted} or newer"
    version = _version(path, Path(path).stat().st_mtime_ns)
    if version < OLDEST:
        return f"git {'.'.join(map(str, version))} is too old; worktrees need {wanted} or newer"
    return ""


@lru_cache(maxsize=4)
def _version(path: str, _changed: int) -> tuple[int, int]:
    try:
        reply = subprocess.run(
            [path, "version"], capture_output=True, check=False, env=_environment(own=True)
        )
    except OSError:
        return (0, 0)
    found = _VERSION.search(reply.stdout.decode("utf-8", "replace"))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def repository_faults(folder: Path) -> list[str]:
    """Why a run with worktrees cannot start in this folder: all reasons."""
    faults = [fault] if (fault := git_fault()) else []
    if shutil.which("git") is None:
        return faults
    try:
        repository = Repository.at(folder)
    except GitCommandError:
        return [*faults, f"{folder} is not in the working tree of a git repository"]
    if repository.prefix and repository.run("check-ignore", "-q", ".", at=folder, ok=(0, 1)).returncode == 0:
        faults.append(f"git ignores {folder}, so that no commit would have what branches do there")
    unresolved = repository.unresolved(repository.top)
    if unresolved:
        shown = ", ".join(clean_text(name, 60) for name in unresolved[:3])
        faults.append(f"{repository.top} is in the middle of a merge with conflicts ({shown}); resolve them")
    links = repository.git("ls-files", "--stage", "-z", "--", ":/")
    names = [entry.partition("\t")[2] for entry in links.split("\0") if entry.startswith(f"{LINK_MODE} ")]
    if names:
        shown = ", ".join(clean_text(name, 60) for name in names[:3])
        faults.append(f"{repository.top} has submodules ({shown}), which worktrees of runs do not support")
    return faults
