"""Where an agent works: files of its conversation, and a sandbox that outlives the process that started it.

Both are known by the records of the tool calls that used them. A conversation that is entered again has its
files back, and finds its sandbox by the id that was recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from holdfast.agents.tools import ToolError

MAX_BYTES = 16 * 2**20


class SandboxGoneError(Exception):
    """Raise it from `connect`: that sandbox has expired, or was removed."""


@runtime_checkable
class Sandbox(Protocol):
    """A place that runs what a model wrote. `kind` names its like: an id is only good for its own kind."""

    kind: str

    async def start(self) -> str:
        """A new one; its id, by which any process finds it again."""
        ...

    async def connect(self, id: str) -> Any:  # noqa: A002
        """What a tool gets for its parameter `sandbox`. Raises SandboxGoneError."""
        ...


class WorkspaceChanges(msgspec.Struct, frozen=True):
    """What one tool call did to the place: files (None: deleted), and the sandbox it used."""

    files: dict[str, bytes | None] = {}
    sandbox: dict[str, str] | None = None

    def kept(self) -> dict[str, Any]:
        found: dict[str, Any] = {"files": dict(self.files)} if self.files else {}
        return found if self.sandbox is None else {**found, "sandbox": self.sandbox}


def changes_in(kept: Mapping[str, Any]) -> WorkspaceChanges:
    sandbox = kept.get("sandbox")
    return WorkspaceChanges(dict(kept.get("files") or {}), None if sandbox is None else dict(sandbox))


class Files:
    """What a tool gets for its parameter `files`: all files as they were at the turn's beginning, and its own
    changes. Those of tools beside it appear in the next turn, in the order of the calls."""

    def __init__(self, base: Mapping[str, bytes], room: int) -> None:
        self._base = base
        self._room = room
        self.changes: dict[str, bytes | None] = {}

    def read(self, path: str) -> bytes:
        """Raises ToolError, which is told to the model, where there is none."""
        found = self.changes.get(path, self._base.get(path))
        if found is None:
            raise ToolError(f"there is no file {path!r}; there are: {', '.join(self) or 'none'}")
        return found

    def write(self, path: str, content: bytes | str) -> None:
        data = content.encode() if isinstance(content, str) else bytes(content)
        if not path:
            raise ToolError("a file needs a name")
        used = sum(len(each) for name, each in self.changes.items() if each is not None and name != path)
        if used + len(data) > self._room:
            raise ToolError(f"{path!r} does not fit: there is room for {max(0, self._room - used):,} bytes")
        self.changes[path] = data

    def delete(self, path: str) -> None:
        self.read(path)
        self.changes[path] = None

    def __iter__(self) -> Iterator[str]:
        merged: dict[str, bytes | None] = {**self._base, **self.changes}
        return iter(sorted(path for path, content in merged.items() if content is not None))

    def __contains__(self, path: object) -> bool:
        return path in list(self)


class Workspace:
    """The place of one conversation, in one process."""

    def __init__(self, sandbox: Sandbox | None, uploads: Mapping[str, bytes], max_bytes: int) -> None:
        self._sandbox = sandbox
        # What the caller brought is the caller's: it is in the state, and in no record of ours.
        self._uploads = dict(uploads)
        self._max_bytes = max_bytes
        self.files: dict[str, bytes | None] = {}
        self._id = getattr(sandbox, "id", None)
        self._fixed = self._id is not None
        self._session: Any = None
        self._lock = asyncio.Lock()

    def open_files(self) -> Files:
        merged = {**self._uploads, **self.files}
        present = {path: content for path, content in merged.items() if content is not None}
        return Files(present, self._max_bytes - sum(len(each or b"") for each in self.files.values()))

    def written(self) -> dict[str, bytes]:
        return {path: content for path, content in self.files.items() if content is not None}

    def take(self, changes: WorkspaceChanges) -> None:
        """What a call did, by its record: the same whether it ran just now or days ago elsewhere."""
        self.files.update(changes.files)
        used = changes.sandbox
        if used is None or self._sandbox is None or self._fixed or used["kind"] != self._sandbox.kind:
            return
        if used["id"] != self._id:
            self._id, self._session = used["id"], None

    async def session(self) -> tuple[Any, dict[str, str], str]:
        """(what the tool gets, what is recorded, a word for the model): the one there is, else a new one."""
        if self._sandbox is None:
            raise ToolError("this agent has no sandbox")
        async with self._lock:
            lost = ""
            if self._session is None and self._id is not None:
                try:
                    self._session = await self._sandbox.connect(self._id)
                except SandboxGoneError:
                    lost = "(The sandbox was gone; this is a new and empty one.)\n"
            if self._session is None:
                self._id = await self._sandbox.start()
                self._session = await self._sandbox.connect(self._id)
            return self._session, {"kind": self._sandbox.kind, "id": str(self._id)}, lost
