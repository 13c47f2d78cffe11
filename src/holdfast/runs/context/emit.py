"""Live output of a handler: checked when it is emitted, stored in batches, shown after commit (D-23). Lines
of its log are part of it (ADR 90)."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from logging import WARNING
from typing import Any, Final

from holdfast.checkpoint import pack
from holdfast.checkpoint.envelope import encode_packed
from holdfast.checkpoint.size_limit import require_emitted_size
from holdfast.model.record_bodies import ChunkBody
from holdfast.runs.context.driver_protocols import Attempt
from holdfast.runs.context.substeps import inside_step
from holdfast.types.redaction import redactor, tenant_scope
from holdfast.types.text import require_text
from holdfast.types.value import FrozenDict, freeze

# A batch of live output is one record, written after this many bytes or seconds (D-23): a record for each
# token would cost a write each.
CHUNK_BYTES = 4096
CHUNK_DELAY = 0.05

LOG: Final = "log"
"""The kind of a line of log."""
LINE_BYTES: Final = 8192
"""Of one line; a longer one is cut."""
MAX_LINES: Final = 1_000
MAX_LINE_BYTES: Final = 256 * 1024
"""Of all lines of an attempt. Warnings and errors may take a fifth more: they say why it failed."""
_RESERVE: Final = 1.2


class Emitter:
    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._chunks: list[tuple[str, Any]] = []
        self._bytes = 0
        # How many of the batch are lines of log.
        self._lines = 0
        self._timer: asyncio.TimerHandle | None = None
        # Whether the batch comes from inside a sub-step.
        self._inside = False
        # On re-entry after a park: what was emitted before is not emitted again.
        self._emitted_before = attempt.execution.chunks
        self._log: LineLimit | None = None

    def emittable(self, data: Any, kind: str) -> tuple[Any, str, int]:
        """Checked before it is queued: later the handler could no longer get the error."""
        where = f"what node {self._attempt.node.id!r} emits"
        require_text(kind, f"the kind of {where}")
        if type(data) is str and len(data) < CHUNK_BYTES and data.isascii():
            return data, kind, len(data)
        session = self._attempt.session
        frozen = freeze(data, session.program.adopt, where)
        size = len(encode_packed(pack(frozen, session.codec.registry, where)))
        require_emitted_size(size, where)
        return frozen, kind, size

    def emit(self, frozen: Any, kind: str, size: int) -> None:
        inside = inside_step.get()
        if not inside and self._emitted_before:
            self._emitted_before -= 1
            return
        self._add(frozen, kind, size, inside=inside)

    def emit_if_open(self, frozen: Any, kind: str, size: int) -> None:
        """From a thread, which may still run after the end of its attempt."""
        if not self._attempt.closed:
            self.emit(frozen, kind, size)

    def _add(self, frozen: Any, kind: str, size: int, *, inside: bool, lines: int = 0) -> None:
        if inside is not self._inside:
            self.flush()
            self._inside = inside
        self._chunks.append((kind, frozen))
        self._bytes += size
        self._lines += lines
        if self._bytes >= CHUNK_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHUNK_DELAY, self.flush)

    # ------------------------------------------------------------------ lines of log
    def store_line(self, level: int, name: str, text: str) -> None:
        """A line of `ctx.log`. It raises nothing, from whatever thread it is called, as logging does not."""
        loop = self._attempt.session.loop
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            self._store_line(level, name, text)
        elif not loop.is_closed():
            context = copy_context()
            loop.call_soon_threadsafe(lambda: context.run(self._store_line, level, name, text))

    def _store_line(self, level: int, name: str, text: str) -> None:
        at = self._attempt
        if at.closed:
            return
        if self._log is None:
            self._log = LineLimit(at.execution.lines)
        with tenant_scope(at.session.row.tenant):
            # Before it is cut: a part of a secret would not be recognised.
            text = redactor.redact(text)
        inside = inside_step.get()
        for word, line, size in self._log.taken(level, name, _cut(text), inside=inside):
            self._add(FrozenDict({"level": word, "text": line}), LOG, size, inside=inside, lines=1)

    # ------------------------------------------------------------------ records
    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self._attempt
        if self._chunks and not at.closed:
            body = ChunkBody(self._chunks, self._inside, self._lines)
            self._chunks, self._bytes, self._lines = [], 0, 0
            at.calls.note_chunks(at.execution, at.node, body, now=True)

    def close(self) -> None:
        """Lines alone need no commit of their own: that of the end of the attempt follows at once."""
        at = self._attempt
        if self._chunks and self._lines == len(self._chunks) and not at.closed:
            body = ChunkBody(self._chunks, self._inside, self._lines)
            self._chunks = []
            at.calls.note_chunks(at.execution, at.node, body, now=False)
        self.flush()


class LineLimit:
    """Counts the lines of an attempt, and says which of them are stored."""

    def __init__(self, before: int) -> None:
        # On re-entry after a park: lines that the code around the sub-steps has stored before.
        self._before = before
        self._count = 0
        self._bytes = 0
        self._notices = 0

    def taken(self, level: int, name: str, text: str, *, inside: bool) -> list[tuple[str, str, int]]:
        """The line, or the first time that one is left out, a line that says so; with its level and size."""
        size = len(text.encode())
        share = _RESERVE if level >= WARNING else 1.0
        fits = self._count < MAX_LINES * share and self._bytes + size <= MAX_LINE_BYTES * share
        if not fits:
            # Once for the lines below warnings, and once for all.
            if self._notices >= (2 if level >= WARNING else 1):
                return []
            self._notices = 2 if level >= WARNING else 1
            name, text = "warning", _left_out(level)
            size = len(text)
        else:
            self._count += 1
            self._bytes += size
        if not inside and self._before:
            self._before -= 1
            return []
        return [(name, text, size)]


def _left_out(level: int) -> str:
    which = "Later lines" if level >= WARNING else "Later lines below warnings"
    return (
        f"{which} of this attempt are not stored: it has {MAX_LINES:,} lines or "
        f"{MAX_LINE_BYTES // 1024} KiB. The log of its worker has them."
    )


def _cut(text: str) -> str:
    # Whatever a program logs can be stored, also halves of surrogate pairs.
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) <= LINE_BYTES:
        return encoded.decode()
    return f"{encoded[:LINE_BYTES].decode('utf-8', 'ignore')} [{len(encoded) - LINE_BYTES:,} more bytes]"
