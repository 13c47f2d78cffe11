"""The tools of a coding agent, as the models of each provider know them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from holdfast.agents.agent import AgentTool
from holdfast.agents.coding.edits import bytes_of, patched_contents, patched_files, replaced_text
from holdfast.agents.coding.file_changes import make_changes, planned_changes
from holdfast.agents.coding.project_folder import ProjectFolder
from holdfast.agents.coding.search import find_files, find_text, list_folder
from holdfast.agents.command import run_command
from holdfast.agents.tool_environment import tool_environment, without_secrets
from holdfast.agents.tools import NEVER, Approval, Tool, ToolError, ToolOutput, When, tool
from holdfast.agents.truncation import LIMITS
from holdfast.errors import InputError
from holdfast.runs.context.context import Context
from holdfast.types.status import REPEATABLE

OPENAI, ANTHROPIC, GEMINI = "openai", "anthropic", "gemini"
CHANGES: Final = ("write_file", "edit_file", "apply_patch", "shell")
"""Those that may change something; not every family has all of them."""
_EDITS: Final = {"edit_file": "apply_patch", "apply_patch": "edit_file"}
LONGEST: Final = 600.0
_SECONDS: Final = 10.0
_ANTHROPIC_SECONDS: Final = 120.0
UNKNOWN: Final = (
    "The worker stopped while this command ran: its outcome is unknown, and it was not run again. Look at "
    "what it did before you continue."
)
_FIRST, _LINES, _DEPTH, _FOUND = 1, 2000, 1, 100

Approvals = bool | Mapping[str, When | Approval]
FilePath = Annotated[str, "The path of the file, in the working folder."]


def coding_tools(
    root: str | Path,
    *,
    family: str = "",
    environment: Mapping[str, str] | None = None,
    approval: Approvals = False,
    owned: bool = False,
    sandbox: Sequence[str] = (),
) -> list[Tool]:
    """Tools for the files and commands of a folder. Files outside of it are not reached; commands run as the
    user of this process, so they are not limited to it.

    `family`: of the model, "openai", "anthropic" or "gemini". `approval`: True if a person approves each call
    that may change something, or the condition for each tool. `owned`: no one else uses the folder, so that
    the model is told of a command that was cut off by a crash; else its outcome is in doubt. `sandbox`: the
    words of a program that runs the commands, before theirs."""
    folder = ProjectFolder(root)
    variables = without_secrets(tool_environment() if environment is None else environment)
    makers: list[Callable[[], Tool]] = [
        lambda: _read_file(folder),
        lambda: _write_file(folder),
        (lambda: _apply_patch(folder)) if family == OPENAI else (lambda: _edit_file(folder)),
        lambda: _shell(folder, variables, family, owned=owned, sandbox=sandbox),
        lambda: _grep(folder),
        lambda: _glob(folder),
    ]
    if family == GEMINI:
        makers.append(lambda: _list_dir(folder))
    return with_approvals([make() for make in makers], approval)


def with_approvals(tools: list[Tool], approval: Approvals) -> list[Tool]:
    """Raises InputError for a name that no tool has: a condition that is never asked is no condition. That of
    `edit_file` is that of `apply_patch` too, and the reverse: a model has the one that its family knows. The
    tools of an agent that is a tool are asked about in the same way."""
    if approval is False:
        return tools
    if approval is True:
        return [_always_approved(each) for each in tools]
    known = {each.name for each in _with_inner(tools)} | set(CHANGES)
    unknown = sorted(set(approval) - known)
    if unknown:
        raise InputError(
            f"there is no tool {unknown[0]!r} to approve.", hint=f"Known: {', '.join(sorted(known))}."
        )
    both = {_EDITS[name]: _whatever_is_given(when) for name, when in approval.items() if name in _EDITS}
    conditions = both | dict(approval)

    def conditional(tool: Tool) -> Tool:
        made = tool.with_approval(conditions[tool.name]) if tool.name in conditions else tool
        return made.with_each_tool(conditional) if isinstance(made, AgentTool) else made

    return [conditional(each) for each in tools]


def _always_approved(tool: Tool) -> Tool:
    if isinstance(tool, AgentTool):
        return tool.with_each_tool(_always_approved)
    return tool if tool.effect in REPEATABLE else tool.with_approval(True)


def _with_inner(tools: Iterable[Tool]) -> Iterator[Tool]:
    """Also those of agents that are tools."""
    for each in tools:
        yield each
        if isinstance(each, AgentTool):
            yield from _with_inner((*each.agent.tools, *each.agent.toolkit))


def _whatever_is_given(condition: When | Approval) -> When | Approval:
    """The same for a tool with other arguments."""
    if isinstance(condition, Approval):
        return replace(condition, when=condition.when not in (False, NEVER), prompt=None)
    return condition not in (False, NEVER)


def _read_file(folder: ProjectFolder) -> Tool:
    def read_file(
        file_path: FilePath,
        offset: Annotated[int, "The number of the first line."] = _FIRST,
        limit: Annotated[int, "How many lines."] = _LINES,
    ) -> str:
        """Reads a text file. Each line has its number before it."""
        return numbered_lines(folder, file_path, offset, limit)

    return tool(effect="read", limit=LIMITS["read_file"])(read_file)


def _write_file(folder: ProjectFolder) -> Tool:
    def plan(file_path: str, content: str) -> Any:
        return planned_changes(folder, {folder.place_to_write(file_path): bytes_of(content)})

    def write_file(
        file_path: FilePath,
        content: Annotated[str, "The whole content."],
        prepared: Any,
        idempotency_key: str,
    ) -> str:
        """Writes a text file, whole. Folders that do not exist are made."""
        contents = {folder.place_to_write(file_path): bytes_of(content)}
        make_changes(folder, prepared, lambda _: contents, idempotency_key)
        return f"{file_path}: {len(bytes_of(content)):,} bytes"

    return _edit("write_file", write_file, plan)


def _edit_file(folder: ProjectFolder) -> Tool:
    def plan(file_path: str, old_string: str, new_string: str, replace_all: bool) -> Any:
        made, count = replaced_text(folder, file_path, old_string, new_string, every=replace_all)
        return {"files": planned_changes(folder, made), "count": count}

    def edit_file(
        file_path: FilePath,
        old_string: Annotated[str, "The exact text to replace, as it is in the file, without line numbers."],
        new_string: Annotated[str, "The text in its place."],
        prepared: Any,
        idempotency_key: str,
        replace_all: Annotated[bool, "Replace every occurrence; else there must be exactly one."] = False,
    ) -> str:
        """Replaces a text in a file."""

        def contents_of(_: Any) -> Any:
            return replaced_text(folder, file_path, old_string, new_string, every=replace_all)[0]

        make_changes(folder, prepared["files"], contents_of, idempotency_key)
        count = prepared["count"]
        return f"{file_path}: replaced {count} time{'' if count == 1 else 's'}"

    return _edit("edit_file", edit_file, plan)


def _apply_patch(folder: ProjectFolder) -> Tool:
    def plan(patch: str) -> Any:
        files = patched_files(folder, patch)
        done = [f"{each.operation.kind} {_named(each.operation)}" for each in files]
        return {"files": planned_changes(folder, patched_contents(folder, files)), "done": done}

    def apply_patch(
        patch: Annotated[str, "From `*** Begin Patch` to `*** End Patch`."],
        prepared: Any,
        idempotency_key: str,
    ) -> str:
        """Adds, changes, moves and deletes files by a patch: all of it, or nothing if one hunk does not fit.

        Between `*** Begin Patch` and `*** End Patch` there is a section for each file: `*** Add File: PATH`
        with lines that begin with `+`; `*** Delete File: PATH`; or `*** Update File: PATH`, then perhaps
        `*** Move to: PATH`, then hunks. A hunk begins with `@@`, perhaps followed by a line before it, such
        as that of its function. Its lines begin with a space (unchanged), `-` or `+`. Give three unchanged
        lines before and after each change. `*** End of File` after a hunk says that it is at the end."""

        def contents_of(wanted: Any) -> Any:
            # Not those that have changed: an update of them would not fit any more.
            return patched_contents(folder, patched_files(folder, patch, wanted), wanted)

        make_changes(folder, prepared["files"], contents_of, idempotency_key)
        return "\n".join(prepared["done"])

    return _edit("apply_patch", apply_patch, plan)


def _named(operation: Any) -> str:
    return f"{operation.path} -> {operation.moved_to}" if operation.moved_to else operation.path


def _edit(name: str, fn: Callable[..., Any], plan: Callable[..., Any]) -> Tool:
    return tool(idempotent=True, prepare=plan, ordered=True, limit=LIMITS[name])(fn)


def _grep(folder: ProjectFolder) -> Tool:
    async def grep(
        pattern: Annotated[str, "A regular expression."],
        path: Annotated[str, "A folder or a file."] = ".",
        glob_filter: Annotated[str, "Only files with such names, for example *.py."] = "",
        case_insensitive: bool = False,
        max_results: int = _FOUND,
    ) -> str:
        """Searches text files by a regular expression. Returns lines as path:number:text."""
        most = min(max(1, max_results), 10_000)
        return await find_text(
            folder, pattern, path, names=glob_filter, ignore_case=case_insensitive, most=most
        )

    return tool(effect="read", limit=LIMITS["grep"])(grep)


def _glob(folder: ProjectFolder) -> Tool:
    def glob(
        pattern: Annotated[str, "For example **/*.ts."],
        path: Annotated[str, "The folder to search."] = ".",
    ) -> str:
        """Finds files by their names, the newest first."""
        return "\n".join(find_files(folder, pattern, path)) or "Nothing found."

    return tool(effect="read", limit=LIMITS["glob"])(glob)


def _list_dir(folder: ProjectFolder) -> Tool:
    def list_dir(path: str = ".", depth: Annotated[int, "Of folders inside."] = _DEPTH) -> str:
        """Lists a folder. Folders end with a slash."""
        return "\n".join(list_folder(folder, path, max(1, depth))) or "It is empty."

    return tool(effect="read", limit=LIMITS["list_dir"])(list_dir)


# ---------------------------------------------------------------------- commands
_entries: WeakKeyDictionary[Context, str] = WeakKeyDictionary()


def entry_of(ctx: Context) -> str:
    """Of one entry into a node: after a crash it is another."""
    return _entries.setdefault(ctx, str(uuid4()))


def _shell(
    folder: ProjectFolder,
    variables: Mapping[str, str],
    family: str,
    *,
    owned: bool,
    sandbox: Sequence[str],
) -> Tool:
    usual = _ANTHROPIC_SECONDS if family == ANTHROPIC else _SECONDS

    async def run(command: str, timeout_ms: int | None) -> ToolOutput:
        seconds = min(usual if timeout_ms is None else max(timeout_ms, 1) / 1000, LONGEST)
        words = (*sandbox, "/bin/sh", "-c", command)
        ended = await run_command(words, cwd=folder.root, env=variables, timeout=seconds)
        output = ended.output.rstrip("\n")
        if ended.timed_out:
            more = f"[It took longer than {seconds:g} s and was stopped; set timeout_ms for more.]"
            return ToolOutput(f"{output}\n{more}".lstrip("\n"), failed=True)
        return ToolOutput(f"{output}\n[exit code {ended.code}]".lstrip("\n"), failed=ended.code != 0)

    async def shell(
        command: Annotated[str, "A command line."],
        timeout_ms: Annotated[int | None, f"Default: {usual:.0f} s; at most 600000."] = None,
        description: Annotated[str, "What it does, in a few words."] = "",
    ) -> ToolOutput:
        """Runs a command in the working folder and returns its output and exit code."""
        return await run(command, timeout_ms)

    if not owned:
        return tool(ordered=True, limit=LIMITS["shell"])(shell)

    def plan(command: str, timeout_ms: int | None, description: str, ctx: Context) -> str:
        return entry_of(ctx)

    async def owned_shell(
        command: Annotated[str, "A command line."],
        ctx: Context,
        prepared: str,
        idempotency_key: str,
        timeout_ms: Annotated[int | None, f"Default: {usual:.0f} s; at most 600000."] = None,
        description: Annotated[str, "What it does, in a few words."] = "",
    ) -> ToolOutput:
        """Runs a command in the working folder and returns its output and exit code."""
        # Planned in an entry that ended before the result was recorded: the command may have run.
        if prepared != entry_of(ctx):
            return ToolOutput(UNKNOWN, failed=True)
        return await run(command, timeout_ms)

    # To the engine it may be called again, because a second call never runs the command.
    return tool(name="shell", idempotent=True, prepare=plan, ordered=True, limit=LIMITS["shell"])(owned_shell)


MOST: Final = 16 * 2**20
"""Bytes of lines in one answer."""
_BINARY: Final = 8192


def numbered_lines(folder: ProjectFolder, path: str, first: int, count: int) -> str:
    """`12 | text`. Only these lines are kept, whatever the size of the file. Raises ToolError."""
    first, count = max(1, first), max(1, count)
    found: list[str] = []
    size, number = 0, 0
    with folder.open_file(folder.place(path)) as fd, os.fdopen(os.dup(fd), "rb") as file:
        if b"\0" in file.peek(_BINARY)[:_BINARY]:
            raise ToolError(f"{path} is a binary file")
        # A line may be as long as the file.
        while line := file.readline(MOST):
            number += 1
            if number < first:
                continue
            text = line.decode(errors="replace").rstrip("\r\n")
            found.append(f"{number} | {text}")
            size += len(line)
            if len(found) == count or size >= MOST:
                more = bool(file.peek(1))
                break
        else:
            more = False
    if not found:
        return "The file is empty." if not number else f"The file has only {number} lines."
    return "\n".join([*found, f"(there are more lines; read on with offset={number + 1})"] if more else found)
