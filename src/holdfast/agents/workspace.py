"""An agent's workspace: the files of its conversation, and a sandbox that outlives the process that started
it.

Both are restored from the records of the tool calls. A resumed conversation has its files again, and finds
its sandbox by the recorded id.
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
    """Runs code that a model wrote. `kind`: an id is valid only for sandboxes of the same kind."""

    kind: str

    async def start(self) -> str:
        """Start a new sandbox. Returns its id, with which any process can connect to it."""
        ...

    async def connect(self, id: str) -> Any:  # noqa: A002
        """The value of a tool's parameter `sandbox`. Raises SandboxGoneError."""
        ...


class WorkspaceChanges(msgspec.Struct, frozen=True):
    """The changes of one tool call: files (None: deleted), and the sandbox it used."""

    files: dict[str, bytes | None] = {}
    sandbox: dict[str, str] | None = None

    def kept(self) -> dict[str, Any]:
        found: dict[str, Any] = {"files": dict(self.files)} if self.files else {}
        return found if self.sandbox is None else {**found, "sandbox": self.sandbox}


def changes_in(kept: Mapping[str, Any]) -> WorkspaceChanges:
    sandbox = kept.get("sandbox")
    return WorkspaceChanges(dict(kept.get("files") or {}), None if sandbox is None else dict(sandbox))


class Files:
    """The value of a tool's parameter `files`: all files as at the start of the turn, with its own changes.
    Changes of concurrent tools appear in the next turn, in the order of the calls."""

    def __init__(self, base: Mapping[str, bytes], room: int) -> None:
        self._base = base
        self._room = room
        self.changes: dict[str, bytes | None] = {}

    def read(self, path: str) -> bytes:
        """Raises ToolError, which the model gets, if there is none."""
        found = self.changes.get(path, self._base.get(path))
        if found is None:
            raise ToolError(f"there is no file {path!r}; existing: {', '.join(self) or 'none'}")
        return found

    def write(self, path: str, content: bytes | str) -> None:
        data = content.encode() if isinstance(content, str) else bytes(content)
        if not path:
            raise ToolError("a file needs a name")
        # Without the file's own earlier content, which this write replaces.
        used = sum(len(each) for name, each in self.changes.items() if each is not None and name != path)
        if used + len(data) > self._room:
            raise ToolError(f"{path!r} is too large: {max(0, self._room - used):,} bytes are left")
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
    """The workspace of one conversation, in one process."""

    def __init__(self, sandbox: Sandbox | None, uploads: Mapping[str, bytes], max_bytes: int) -> None:
        self._sandbox = sandbox
        # Uploads are not recorded: they come from the state.
        self._uploads = dict(uploads)
        self._max_bytes = max_bytes
        self.files: dict[str, bytes | None] = {}
        self._id = getattr(sandbox, "id", None)
        # A sandbox that the caller chose is kept, whatever earlier records say.
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
        """Apply the recorded changes of a call, whether it ran just now or earlier in another process."""
        self.files.update(changes.files)
        used = changes.sandbox
        # An id of another kind of sandbox means nothing to this one.
        if used is None or self._sandbox is None or self._fixed or used["kind"] != self._sandbox.kind:
            return
        if used["id"] != self._id:
            self._id, self._session = used["id"], None

    async def session(self) -> tuple[Any, dict[str, str], str]:
        """(the sandbox, what is recorded, a note for the model): the existing sandbox, else a new one."""
        if self._sandbox is None:
            raise ToolError("this agent has no sandbox")
        # Concurrent tools of one turn share one sandbox: only the first of them starts it.
        async with self._lock:
            lost = ""
            if self._session is None and self._id is not None:
                try:
                    self._session = await self._sandbox.connect(self._id)
                except SandboxGoneError:
                    lost = "(The sandbox did not exist any more; this is a new and empty one.)\n"
            if self._session is None:
                self._id = await self._sandbox.start()
                self._session = await self._sandbox.connect(self._id)
            return self._session, {"kind": self._sandbox.kind, "id": str(self._id)}, lost
