"""A folder of this machine as a sandbox, and tools for files and commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from holdfast.agents.command import run_command
from holdfast.agents.tool_environment import tool_environment
from holdfast.agents.tools import Approval, Tool, When, tool
from holdfast.agents.workspace import Files, SandboxGoneError
from holdfast.types.ids import is_id

SHOWN = 20_000


class LocalSandbox:
    """Commands run in a separate folder below `root`, as the user of this process: it does not isolate
    anything. If the model is not trusted, pass a real sandbox with the same two methods.

    `id`: use this one, whatever was recorded."""

    kind = "local"

    def __init__(
        self,
        root: str | Path,
        *,
        id: str | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.root = Path(root)
        self.id = id
        self.env = {**tool_environment(), "HOME": str(self.root), **(env or {})}

    async def start(self) -> str:
        name = str(uuid4())
        (self.root / name).mkdir(parents=True)
        return name

    async def connect(self, id: str) -> Folder:  # noqa: A002
        place = self.root / id
        # The id comes from a record or a caller: a path such as `../..` must not leave the root.
        if not is_id(id) or not place.is_dir():
            raise SandboxGoneError(f"the folder {place} does not exist")
        return Folder(place, self.env)


class Folder:
    def __init__(self, path: Path, env: Mapping[str, str]) -> None:
        self.path = path
        self._env = dict(env)

    async def run(self, command: str, timeout: float | None = None) -> dict[str, Any]:
        """Runs in the shell. Processes that it leaves running are ended."""
        ended = await run_command(command, cwd=self.path, env=self._env, timeout=timeout)
        if ended.timed_out:
            raise TimeoutError
        return {"exit": ended.code, "output": _cut(ended.output)}


def _cut(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    return f"{text[: SHOWN // 2]}\n[{len(text) - SHOWN:,} characters left out]\n{text[-SHOWN // 2 :]}"


def shell_tool(
    name: str = "shell",
    *,
    effect: str = "external",
    approval: When | Approval | None = None,
    timeout: float = 120.0,
    max_calls: int | None = None,
) -> Tool:
    """A tool that runs commands in the agent's sandbox."""

    async def shell(command: Annotated[str, "A command line."], sandbox: Any) -> dict[str, Any]:
        return await sandbox.run(command, timeout)

    return tool(
        name=name,
        description="Runs a command in the sandbox and returns its exit code and output.",
        effect=effect,
        approval=approval,
        max_calls=max_calls,
    )(shell)


@tool(effect="pure")
async def write_file(path: str, text: str, files: Files) -> str:
    """Writes a text file."""
    files.write(path, text)
    return f"{path}: {len(text.encode()):,} bytes"


@tool(effect="pure")
async def read_file(path: str, files: Files) -> str:
    """Reads a text file."""
    return files.read(path).decode(errors="replace")


@tool(effect="pure")
async def list_files(files: Files) -> list[str]:
    """Lists all files."""
    return list(files)


def file_tools() -> list[Tool]:
    """Tools to write, read and list the files of the conversation."""
    return [write_file, read_file, list_files]
