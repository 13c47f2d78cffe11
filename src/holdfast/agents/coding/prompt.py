"""What a coding agent is told before its task: how it works, where it is, and the project's own instructions.

Read once, when the conversation begins, and recorded with its first messages.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from holdfast.agents.coding.kit import ANTHROPIC, GEMINI, OPENAI
from holdfast.agents.coding.project_folder import ProjectFolder
from holdfast.agents.command import run_command
from holdfast.agents.tool_environment import tool_environment, without_secrets
from holdfast.agents.tools import Tool, ToolError

AGENTS: Final = "AGENTS.md"
OWN_FILES: Final = {ANTHROPIC: "CLAUDE.md", GEMINI: "GEMINI.md", OPENAI: ".codex/instructions.md"}
"""Beside AGENTS.md, those that the provider's own agent reads."""
MOST: Final = 32 * 1024
CUT: Final = "[The project's instructions were cut at 32 KiB]"
_LARGEST: Final = 16 * 2**20
_SECONDS: Final = 5.0
_COMMITS: Final = 5

_ALL: Final = """\
You are a coding agent. You change files of a project and run commands, by your tools, until the task is
done; nobody answers questions in between. Look at the code before you change it, follow its style, and change
only what the task needs. Check what you did: run the tests or the program. If a tool fails, read its message
and try another way; do not repeat the same call. At the end say in a few sentences what you did, and what is
left. Paths are relative to the working folder. Files outside of it cannot be reached by the file tools, and
.git is only read."""
_FAMILY: Final = {
    OPENAI: "Change files with apply_patch, in small patches with enough unchanged lines around each change; "
    "use write_file only for whole new files. If a patch does not fit, read the file again.",
    ANTHROPIC: "Read a file before you edit it. Prefer edit_file to write_file for a file that exists: "
    "old_string must be in the file exactly once, with its indentation and without line numbers. Use grep "
    "and glob to search, not the shell.",
    GEMINI: "Use list_dir, glob and grep to find your way. Change a file with edit_file: old_string must be "
    "in the file exactly once, with its indentation and without line numbers. The project's rules are in "
    "GEMINI.md or AGENTS.md, if there are any.",
}
_OTHERS: Final = (
    "Read a file before you edit it. edit_file replaces a text that is in the file exactly once; write_file "
    "writes a whole file."
)


async def coding_prompt(folder: Path, *, family: str, model: str, tools: Sequence[Tool], now: int) -> str:
    """`folder`: resolved. `tools`: those that the model has. `now`: microseconds."""
    top = git_root(folder)
    parts = [_ALL, _FAMILY.get(family, _OTHERS), _environment(folder, top, model, now)]
    if top is not None:
        parts.append(await _git_state(folder))
    parts.append("Tools: " + ", ".join(each.name for each in tools) + ".")
    parts.append(project_instructions(folder, family))
    return "\n\n".join(part for part in parts if part)


def git_root(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _environment(folder: Path, top: Path | None, model: str, now: int) -> str:
    lines = [
        f"Working folder: {folder}",
        f"Git repository: {'no' if top is None else top}",
        f"Platform: {platform.system().lower()} {platform.release()}",
        f"Date: {datetime.fromtimestamp(now / 1e6, UTC):%Y-%m-%d}",
        f"Model: {model}",
    ]
    return "\n".join(["<environment>", *lines, "</environment>"])


async def _git_state(folder: Path) -> str:
    """As it is now: the model can look again."""
    branch = await _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    changed = await _git(folder, "status", "--porcelain")
    commits = await _git(folder, "log", f"-{_COMMITS}", "--format=%h %s")
    if not (branch or commits):
        return ""
    count = len(changed.splitlines())
    return "\n".join(
        [
            "<git>",
            f"Branch: {branch}",
            f"Changed and new files: {count}",
            "Latest commits:",
            commits,
            "</git>",
        ]
    )


async def _git(folder: Path, *words: str) -> str:
    """Programs that the repository's own settings name are not started."""
    safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    env = {**without_secrets(tool_environment()), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"}
    try:
        ended = await run_command(("git", *safe, *words), cwd=folder, env=env, timeout=_SECONDS, most=2**20)
    except OSError:
        return ""
    return ended.output.strip() if ended.code == 0 and not ended.timed_out else ""


# ---------------------------------------------------------------------- the project's files
def project_instructions(folder: Path, family: str) -> str:
    """Those of the repository's top first, then of each folder down to the working folder."""
    top = git_root(folder) or folder
    found: list[str] = []
    size = 0
    for name, text in _instruction_files(top, folder, family):
        section = f"# {name}\n\n{text.strip()}"
        data = section.encode()
        if size + len(data) > MOST:
            found += [data[: MOST - size].decode(errors="ignore"), CUT]
            break
        size += len(data)
        found.append(section)
    return "\n\n".join(found)


def _instruction_files(top: Path, folder: Path, family: str) -> Iterator[tuple[str, str]]:
    """A file that is a link to another one of them is read once."""
    project = ProjectFolder(top)
    names = [AGENTS, *filter(None, [OWN_FILES.get(family)])]
    steps = folder.relative_to(top).parts
    seen: set[tuple[str, ...]] = set()
    for depth in range(len(steps) + 1):
        for name in names:
            path = "/".join((*steps[:depth], name))
            try:
                place = project.place(path)
                if place in seen or not project.exists(place):
                    continue
                seen.add(place)
                yield path, project.read(place, _LARGEST).decode(errors="replace")
            except ToolError:
                # A link that leads out of the project, or a file that cannot be read: not ours to follow.
                continue
