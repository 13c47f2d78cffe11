"""The notes of executions under way, in the store: documents that only the activity with the newest revision
may change."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.drivers.temporal.payloads import ExecNote, Unwritten
from holdfast.errors import LeaseLostError
from holdfast.model.position import Exec
from holdfast.store.protocols import Store
from holdfast.types.document import Document

NOTES: Final = "exec_notes"
"""The kind of the documents with the notes of executions."""


class EmittedCount(msgspec.Struct, array_like=True, frozen=True):
    """How much live output an attempt has written."""

    attempt: int = 0
    chunks: int = 0
    lines: int = 0


class NotesBody(msgspec.Struct, array_like=True):
    """`entry`: the number of the activity that entered last, or of the last one that was given up."""

    entry: int = 0
    notes: list[ExecNote] = []
    emitted: EmittedCount = EmittedCount()


class NotesDocument:
    """The notes of one execution in the store. Its revision is its term: an activity that enters the
    execution raises it, and then nothing of an earlier one is accepted."""

    def __init__(self, store: Store, unwritten: Unwritten, scope: str, node: int, visit: int) -> None:
        self._store = store
        self._tenant = unwritten.tenant
        self._name = f"{unwritten.run}/{scope}/{node}/{visit}"
        self.where = f"run {unwritten.run}"
        self._revision = 0
        self._body = NotesBody()
        self._later: int | None = None
        self.size = 0

    async def enter(self, entry: int, execution: Exec, *, later: bool = False) -> None:
        """Raise the term, with no notes: the run has those of earlier activities. How much live output there
        was before is noted in the execution. Raises LeaseLostError if this activity was given up before.
        `later`: with the first note. Until then it has no effect that another activity could repeat."""
        self._later = entry if later else None
        if later:
            return
        while True:
            known, revision = await self._read()
            if known.entry >= entry:
                raise LeaseLostError(f"{self.where}: another worker has this execution")
            if await self._put(NotesBody(entry, [], known.emitted), revision):
                break
        if known.emitted.attempt == execution.attempt:
            execution.chunks, execution.lines = known.emitted.chunks, known.emitted.lines

    async def give_up(self, entry: int) -> list[ExecNote]:
        """Raise the term: the activity with this number can note nothing more, and cannot enter later. What
        it has noted; the same if it is asked again."""
        while True:
            known, revision = await self._read()
            if known.entry < entry:
                known = NotesBody(entry, [], known.emitted)
            if await self._put(known, revision):
                return known.notes

    async def require_current(self) -> None:
        """Raises LeaseLostError if another activity has entered the execution, or this one was given up."""
        if self._later is None and (await self._read())[1] != self._revision:
            raise LeaseLostError(f"{self.where}: another worker has this execution")

    async def _read(self) -> tuple[NotesBody, int]:
        found = await self._store.document(self._tenant, NOTES, self._name)
        if found is None:
            return NotesBody(), 0
        return msgspec.msgpack.decode(found.body, type=NotesBody), found.revision

    async def write(self, notes: list[ExecNote], execution: Exec) -> None:
        """Raises LeaseLostError if another activity has entered the execution."""
        if self._later is not None:
            await self.enter(self._later, execution)
        emitted = EmittedCount(execution.attempt, execution.chunks, execution.lines)
        if not await self._put(NotesBody(self._body.entry, notes, emitted), self._revision):
            raise LeaseLostError(f"{self.where}: another worker has this execution")

    async def _put(self, body: NotesBody, expect: int) -> bool:
        raw = msgspec.msgpack.encode(body)
        document = Document(tenant=self._tenant, kind=NOTES, name=self._name, body=raw)
        made = await self._store.put_document(document, expect=expect)
        if made is not None:
            self._revision, self._body, self.size = made.revision, body, len(raw)
        return made is not None


async def drop_notes(store: Store, tenant: str, run: str) -> None:
    """Those of a run that has ended."""
    for document in await store.documents(tenant, NOTES, prefix=f"{run}/"):
        await store.drop_document(tenant, NOTES, document.name)
