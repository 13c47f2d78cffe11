"""Text and files by pattern, below one place of a folder."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from holdfast.agents.coding.globs import SKIPPED_FOLDERS, files_below, glob_pattern
from holdfast.agents.coding.grep_files import LONGEST, SKIPPED
from holdfast.agents.coding.project_folder import ProjectFolder
from holdfast.agents.command import run_command
from holdfast.agents.tool_environment import tool_environment
from holdfast.agents.tools import ToolError

SECONDS: Final = 30.0
_FOUND, _NOTHING = 0, 1
_MOST: Final = 8 * 2**20
_LINE: Final = re.compile(r"[^\n]+?:[0-9]+:")


async def find_text(
    folder: ProjectFolder, pattern: str, path: str, *, names: str, ignore_case: bool, most: int
) -> str:
    """Lines with their files and numbers. ripgrep is used where it is installed. Raises ToolError."""
    place = folder.place(path)
    if not folder.exists(place):
        raise ToolError(f"there is no {path}")
    if "\0" in pattern or "\0" in names:
        raise ToolError("a pattern has no NUL")
    words = _words(pattern, "/".join(place) or ".", names, ignore_case=ignore_case, most=most)
    ended = await run_command(words, cwd=folder.root, env=tool_environment(), timeout=SECONDS, most=_MOST)
    if ended.timed_out:
        raise ToolError(f"the search took longer than {SECONDS:g} s; use a simpler pattern or a smaller path")
    *lines, last = ended.output.splitlines() or [""]
    skipped = last if last.startswith(SKIPPED) else ""
    lines += [] if skipped or not last else [last]
    if ended.code == _NOTHING and not lines:
        return "\n".join(filter(None, ("Nothing found.", skipped)))
    # ripgrep reports files that it could not open by its exit code, beside what it found.
    if ended.code != _FOUND and not _LINE.match(ended.output):
        raise ToolError(f"the search failed: {ended.output.strip()[-500:]}")
    more = f"(only the first {most} are shown)" if len(lines) >= most else ""
    shown = [line.removeprefix("./") for line in lines[:most]]
    return "\n".join([*shown, *filter(None, (more, skipped))])


def _words(pattern: str, path: str, names: str, *, ignore_case: bool, most: int) -> list[str]:
    ripgrep = shutil.which("rg")
    if ripgrep is None:
        words = [sys.executable, "-I", "-m", "holdfast.agents.coding.grep_files", "--max", str(most)]
        words += ["--ignore-case"] * ignore_case + ([f"--glob={names}"] if names else [])
    else:
        words = [ripgrep, "--no-config", "--line-number", "--with-filename", "--no-heading", "--color=never"]
        words += ["--no-messages"]
        words += ["--hidden", "--sort=path", f"--max-columns={LONGEST}", f"--max-count={most}"]
        words += ["--ignore-case"] * ignore_case + ([f"--glob={names}"] if names else [])
        words += [f"--glob=!{folder}" for folder in sorted(SKIPPED_FOLDERS)]
    return [*words, "--", pattern, path]


def find_files(folder: ProjectFolder, pattern: str, path: str) -> list[str]:
    """Paths relative to the working folder, the newest first. Raises ToolError."""
    place = folder.place(path)
    if not folder.is_folder(place):
        raise ToolError(f"there is no folder {path}")
    try:
        wanted = glob_pattern(pattern)
    except ValueError as error:
        raise ToolError(str(error)) from error
    base = folder.root.joinpath(*place)
    found = [each for each in files_below(str(base)) if wanted.match(each)]
    ages = {each: _changed_at(base / each) for each in found}
    prefix = "/".join(place)
    ordered = sorted(found, key=lambda each: (-ages[each], each))
    return [f"{prefix}/{each}" if prefix else each for each in ordered]


def _changed_at(path: os.PathLike[str]) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def list_folder(folder: ProjectFolder, path: str, depth: int) -> list[str]:
    """Folders end with a slash. Links are not followed. Raises ToolError."""
    place = folder.place(path)
    if not folder.is_folder(place):
        raise ToolError(f"there is no folder {path}")
    base = str(folder.root.joinpath(*place))
    found: list[str] = []
    for here, folders, names in os.walk(base):
        inner = os.path.relpath(here, base)
        level = 0 if inner == "." else inner.count(os.sep) + 1
        prefix = "" if inner == "." else f"{inner}/"
        links = {each for each in folders if Path(here, each).is_symlink()}
        found += [f"{prefix}{each}{'' if each in links else '/'}" for each in folders]
        found += [f"{prefix}{each}" for each in names]
        folders[:] = [] if level + 1 >= depth else sorted(set(folders) - links - {".git"})
    return sorted(found)
