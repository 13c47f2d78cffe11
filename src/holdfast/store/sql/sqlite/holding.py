"""The part of the SQLite store that is about people: holds, the audit, the outbox, documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from holdfast.store.sql.sqlite import (
    audit,
    documents,
    hold_changes,
    hold_dues,
    hold_lists,
    holds,
    outbox,
)
from holdfast.store.sql.sqlite.connect import Cursor
from holdfast.store.sql.sqlite.readers import SqliteReaders
from holdfast.store.sql.sqlite.writer import SqliteWriter, Work
from holdfast.types.audit import AuditRow, NewAudit
from holdfast.types.document import Document
from holdfast.types.hold import (
    ChangeRefusal,
    Due,
    HoldChange,
    HoldFilter,
    HoldKey,
    HoldOrder,
    HoldRow,
    Note,
)
from holdfast.types.ids import HoldId, RunId
from holdfast.types.outbox import OutboxRow, OutboxState
from holdfast.types.status import HoldStatus

T = TypeVar("T")


class SqliteWrite(Protocol):
    def __call__(self, work: Work[T], *, wakes: bool = False) -> Awaitable[T]: ...


class SqliteHolds:
    """What it needs of the store: its clock, its one way to write, its readers."""

    _now: Callable[[], int]
    _write: SqliteWrite
    _readers: SqliteReaders
    _writer: SqliteWriter

    def _read(self, query: Callable[[Cursor], T]) -> T:
        return self._readers.read(query)

    def _peek(self, query: Callable[[Cursor], T]) -> T:
        """A few rows by their key, which were probably written just now: the writing connection still has
        them at hand, while a reader begins each look with nothing."""
        found = self._writer.read_if_idle(query)
        return self._readers.read(query) if found is None else found

    # Holds.

    async def hold(self, hold: HoldId) -> HoldRow | None:
        return self._peek(partial(holds.get, hold=hold))

    async def holds(
        self,
        *,
        run: RunId | None = None,
        status: HoldStatus | None = None,
        tenant: str | None = None,
        limit: int = 100,
    ) -> list[HoldRow]:
        if run is not None:
            return self._peek(partial(holds.of_run, run=run, status=status, tenant=tenant, limit=limit))
        where = HoldFilter(tenant=tenant, status=() if status is None else (status,), live=False)
        return [row for row, _ in await self.list_holds(where, limit=limit)]

    async def list_holds(
        self,
        where: HoldFilter,
        *,
        order: HoldOrder = HoldOrder.oldest,
        after: Sequence[Any] | None = None,
        limit: int = 50,
    ) -> list[tuple[HoldRow, tuple[Any, ...]]]:
        query = partial(hold_lists.select, where=where, order=order, after=after, limit=limit)
        return self._readers.read_together(query)

    async def count_holds(self, where: HoldFilter, *, limit: int = 10_000) -> int:
        return self._read(partial(hold_lists.count, where=where, limit=limit))

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        # Only mail concerns a worker; a message, whoever tells it.
        wakes = change.mail is not None or bool(change.outbox)
        return await self._write(partial(hold_changes.change, change=change), wakes=wakes)

    async def due_holds(self, due: Due, *, now: int, limit: int) -> list[HoldRow]:
        return self._read(partial(hold_dues.due, due=due, now=now, limit=limit))

    async def next_due_hold(self) -> int | None:
        return self._read(hold_dues.next_due)

    async def hold_key(self, hold: HoldId, actor: str, key: str) -> HoldKey | None:
        return self._read(partial(hold_changes.key, hold=hold, actor=actor, key=key))

    async def hold_notes(self, hold: HoldId, *, kinds: Sequence[str] = ()) -> list[Note]:
        return self._read(partial(hold_changes.notes, hold=hold, kinds=kinds))

    # The audit, the outbox, documents.

    async def append_audit(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
        return await self._write(partial(audit.append_to, tenant=tenant, entries=entries))

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 1000, hold: str | None = None
    ) -> list[AuditRow]:
        return self._read(partial(audit.select, tenant=tenant, after=after, limit=limit, hold=hold))

    async def audit_head(self, tenant: str) -> tuple[int, bytes]:
        return self._read(partial(audit.head, tenant=tenant))

    async def audit_tenants(self) -> list[str]:
        return self._read(audit.tenants)

    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        if not self._read(partial(outbox.any_due, now=self._now(), topics=topics)):
            return []
        return await self._write(partial(outbox.claim, limit=limit, lease=lease, topics=topics))

    async def finish_outbox(
        self, message: int, *, attempt: int, state: OutboxState, error: str | None = None, due_at: int = 0
    ) -> bool:
        given = {"message": message, "attempt": attempt, "state": state, "error": error, "due_at": due_at}
        return await self._write(partial(outbox.finish, **given))

    async def list_outbox(
        self,
        *,
        tenant: str | None = None,
        state: OutboxState | None = None,
        hold: str | None = None,
        limit: int = 100,
    ) -> list[OutboxRow]:
        return self._read(partial(outbox.select, tenant=tenant, state=state, hold=hold, limit=limit))

    async def replay_outbox(self, message: int) -> bool:
        return await self._write(partial(outbox.replay, message=message), wakes=True)

    async def put_document(self, document: Document, *, expect: int | None = None) -> Document | None:
        return await self._write(partial(documents.put, document=document, expect=expect))

    async def document(self, tenant: str, kind: str, name: str) -> Document | None:
        return self._read(partial(documents.get, tenant=tenant, kind=kind, name=name))

    async def documents(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[Document]:
        given = {"tenant": tenant, "kind": kind, "prefix": prefix, "after": after, "limit": limit}
        return self._read(partial(documents.select, **given))

    async def drop_document(self, tenant: str, kind: str, name: str) -> bool:
        return await self._write(partial(documents.drop, tenant=tenant, kind=kind, name=name))
