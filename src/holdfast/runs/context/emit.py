"""Live output of a handler: checked when it is emitted, stored in batches, shown after commit (D-23)."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.checkpoint import pack
from holdfast.checkpoint.envelope import encode_packed
from holdfast.checkpoint.size_limit import require_emitted_size
from holdfast.runs.context.attempt import Attempt
from holdfast.runs.context.substeps import inside_step
from holdfast.types.text import require_text
from holdfast.types.value import freeze

# A batch of live output is one record, written after this many bytes or seconds (D-23): a record for each
# token would cost a write each.
CHUNK_BYTES = 4096
CHUNK_DELAY = 0.05


class Emitter:
    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._chunks: list[tuple[str, Any]] = []
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        # Whether the batch comes from inside a sub-step.
        self._inside = False
        # On re-entry after a park: what was emitted before is not emitted again.
        self._emitted_before = attempt.execution.chunks

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
        if inside is not self._inside:
            self.flush()
            self._inside = inside
        self._chunks.append((kind, frozen))
        self._bytes += size
        if self._bytes >= CHUNK_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHUNK_DELAY, self.flush)

    def emit_if_open(self, frozen: Any, kind: str, size: int) -> None:
        """From a thread, which may still run after the end of its attempt."""
        if not self._attempt.closed:
            self.emit(frozen, kind, size)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self._attempt
        if self._chunks and not at.closed:
            items, self._chunks, self._bytes = self._chunks, [], 0
            at.calls.note_chunks(at.execution, at.node, items, inside=self._inside)
