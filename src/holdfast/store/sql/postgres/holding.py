"""The part of the PostgreSQL store that is about people: holds, the audit, the outbox, documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from holdfast.store.sql.postgres import audit, documents, hold_changes, hold_dues, hold_lists, holds, outbox
from holdfast.store.sql.postgres.failover import Acknowledgements
from holdfast.store.sql.postgres.pool import PostgresPools, Work
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


class PostgresWrite(Protocol):
    def __call__(self, work: Work[T], *, wakes: bool = False) -> Awaitable[T]: ...


class PostgresHolds:
    """What it needs of the store: its time, its way to write, its connections."""

    now: Callable[[], int]
    _write: PostgresWrite
    _pools: PostgresPools
    _acks: Acknowledgements

    # Holds.

    async def hold(self, hold: HoldId) -> HoldRow | None:
        return await self._pools.read(partial(holds.get, hold=hold))

    async def holds(
        self,
        *,
        run: RunId | None = None,
        status: HoldStatus | None = None,
        tenant: str | None = None,
        limit: int = 100,
    ) -> list[HoldRow]:
        if run is not None:
            query = partial(holds.of_run, run=run, status=status, tenant=tenant, limit=limit)
            return await self._pools.read(query)
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
        return await self._pools.read_together(query)

    async def count_holds(self, where: HoldFilter, *, limit: int = 10_000) -> int:
        return await self._pools.read(partial(hold_lists.count, where=where, limit=limit))

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        # Only mail concerns a worker; a message, whoever tells it.
        wakes = change.mail is not None or bool(change.outbox)
        done = await self._write(partial(hold_changes.change, now=self.now(), change=change), wakes=wakes)
        if isinstance(done, HoldRow):
            self._acks.changed(done)
        return done

    async def due_holds(self, due: Due, *, now: int, limit: int) -> list[HoldRow]:
        return await self._pools.read(partial(hold_dues.due, due=due, now=now, limit=limit))

    async def next_due_hold(self) -> int | None:
        return await self._pools.read(hold_dues.next_due)

    async def hold_key(self, hold: HoldId, actor: str, key: str) -> HoldKey | None:
        return await self._pools.read(partial(hold_changes.key, hold=hold, actor=actor, key=key))

    async def hold_notes(self, hold: HoldId, *, kinds: Sequence[str] = ()) -> list[Note]:
        return await self._pools.read(partial(hold_changes.notes, hold=hold, kinds=kinds))

    # The audit, the outbox, documents.

    async def append_audit(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
        return await self._write(partial(audit.append, tenant=tenant, entries=entries))

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 1000, hold: str | None = None
    ) -> list[AuditRow]:
        query = partial(audit.select, tenant=tenant, after=after, limit=limit, hold=hold)
        return await self._pools.read(query)

    async def audit_head(self, tenant: str) -> tuple[int, bytes]:
        return await self._pools.read(partial(audit.head, tenant=tenant))

    async def audit_tenants(self) -> list[str]:
        return await self._pools.read(audit.tenants)

    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        work = partial(outbox.claim, now=self.now(), limit=limit, lease=lease, topics=topics)
        return await self._pools.write_at_once(work)

    async def finish_outbox(
        self, message: int, *, attempt: int, state: OutboxState, error: str | None = None, due_at: int = 0
    ) -> bool:
        given = {"message": message, "attempt": attempt, "state": state, "error": error, "due_at": due_at}
        return await self._pools.write_at_once(partial(outbox.finish, **given))

    async def list_outbox(
        self,
        *,
        tenant: str | None = None,
        state: OutboxState | None = None,
        hold: str | None = None,
        limit: int = 100,
    ) -> list[OutboxRow]:
        query = partial(outbox.select, tenant=tenant, state=state, hold=hold, limit=limit)
        return await self._pools.read(query)

    async def replay_outbox(self, message: int) -> bool:
        return await self._write(partial(outbox.replay, now=self.now(), message=message), wakes=True)

    async def put_document(self, document: Document, *, expect: int | None = None) -> Document | None:
        work = partial(documents.put, now=self.now(), document=document, expect=expect)
        return await self._pools.write_at_once(work)

    async def document(self, tenant: str, kind: str, name: str) -> Document | None:
        return await self._pools.read(partial(documents.get, tenant=tenant, kind=kind, name=name))

    async def documents(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[Document]:
        given = {"tenant": tenant, "kind": kind, "prefix": prefix, "after": after, "limit": limit}
        return await self._pools.read(partial(documents.select, **given))

    async def drop_document(self, tenant: str, kind: str, name: str) -> bool:
        work = partial(documents.drop, tenant=tenant, kind=kind, name=name)
        return await self._pools.write_at_once(work)
