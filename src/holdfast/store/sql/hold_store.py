"""Holds, the audit, the outbox and documents: small named values of a tenant, each with a revision that
writers can require.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.store.sql import audit, due_holds, hold_changes, outbox
from holdfast.store.sql import hold_rows as holds
from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.connection import Conn, Row
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

_FIELDS = ("tenant", "kind", "name", "body", "revision", "updated_at")
_COLUMNS = ", ".join(_FIELDS)
_ONE = f"SELECT {_COLUMNS} FROM @documents WHERE tenant = ? AND kind = ? AND name = ?"
_SOME = f"""
SELECT {_COLUMNS} FROM @documents
WHERE tenant = ? AND kind = ? AND name >= ? AND name > ? AND substr(name, 1, length(?::text)) = ?
ORDER BY name LIMIT ?"""
_HEADS = _SOME.replace(" body,", " substr(body, 1, ?) AS body,", 1)
_PUT = f"""
INSERT INTO @documents AS known (tenant, kind, name, body, revision, updated_at) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT (tenant, kind, name)
DO UPDATE SET body = excluded.body, revision = known.revision + 1, updated_at = excluded.updated_at
RETURNING {_COLUMNS}"""
_PUT_NEW = f"""
INSERT INTO @documents (tenant, kind, name, body, revision, updated_at) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT DO NOTHING RETURNING {_COLUMNS}"""
_PUT_OVER = f"""
UPDATE @documents SET body = ?, revision = revision + 1, updated_at = ?
WHERE tenant = ? AND kind = ? AND name = ? AND revision = ? RETURNING {_COLUMNS}"""
_DROP = "DELETE FROM @documents WHERE tenant = ? AND kind = ? AND name = ?"
_DROP_ONE = f"{_DROP} AND revision = ?"


async def put(conn: Conn, now: int, document: Document, expect: int | None) -> Document | None:
    place = (document.tenant, document.kind, document.name)
    if expect:
        found = await conn.row(_PUT_OVER, document.body, now, *place, expect)
    else:
        found = await conn.row(_PUT if expect is None else _PUT_NEW, *place, document.body, now)
    return None if found is None else _document(found)


async def get(conn: Conn, tenant: str, kind: str, name: str) -> Document | None:
    found = await conn.row(_ONE, tenant, kind, name)
    return None if found is None else _document(found)


async def select(
    conn: Conn, tenant: str, kind: str, prefix: str, after: str, limit: int, head: int | None
) -> list[Document]:
    which = (tenant, kind, prefix, after, prefix, prefix, limit)
    found = await (conn.rows(_SOME, *which) if head is None else conn.rows(_HEADS, head, *which))
    return [_document(row) for row in found]


async def drop(conn: Conn, _now: int, tenant: str, kind: str, name: str, expect: int | None) -> bool:
    which = (tenant, kind, name)
    return await (conn.run(_DROP, *which) if expect is None else conn.run(_DROP_ONE, *which, expect)) == 1


def _document(values: Row) -> Document:
    return Document(**dict(zip(_FIELDS, values, strict=True)))


class SqlHolds(SqlAccess):
    # Holds.

    async def hold(self, hold: HoldId) -> HoldRow | None:
        return await self._peek(partial(holds.get, hold=hold))

    async def holds(
        self,
        *,
        run: RunId | None = None,
        status: HoldStatus | None = None,
        tenant: str | None = None,
        limit: int = 100,
    ) -> list[HoldRow]:
        if run is not None:
            return await self._peek(partial(holds.of_run, run=run, status=status, tenant=tenant, limit=limit))
        where = HoldFilter(tenant=tenant, status=() if status is None else (status,), live=False)
        return [row for row, _ in await self.list_holds(where, limit=limit)]

    @abstractmethod
    async def list_holds(
        self,
        where: HoldFilter,
        *,
        order: HoldOrder = HoldOrder.oldest,
        after: Sequence[Any] | None = None,
        limit: int = 50,
    ) -> list[tuple[HoldRow, tuple[Any, ...]]]: ...

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        # Only an inbox row concerns a worker; a message concerns the dispatcher of the outbox.
        wakes = change.mail is not None or bool(change.outbox)
        return await self._write(partial(hold_changes.change, change=change), wakes=wakes)

    async def due_holds(self, due: Due, *, now: int, limit: int) -> list[HoldRow]:
        return await self._read(partial(due_holds.due, due=due, now=now, limit=limit))

    async def next_due_hold(self) -> int | None:
        return await self._read(due_holds.next_due)

    async def hold_key(self, hold: HoldId, actor: str, key: str) -> HoldKey | None:
        return await self._read(partial(hold_changes.key, hold=hold, actor=actor, key=key))

    async def hold_notes(self, hold: HoldId, *, kinds: Sequence[str] = ()) -> list[Note]:
        return await self._read(partial(hold_changes.notes, hold=hold, kinds=kinds))

    async def count_notes(self, holds: Sequence[HoldId], *, kinds: Sequence[str]) -> dict[HoldId, int]:
        return await self._read(partial(hold_changes.count_notes, holds=holds, kinds=kinds))

    # The audit, the outbox, documents.

    async def append_audit(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
        return await self._write(partial(_append_audit, tenant=tenant, entries=entries))

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 1000, hold: str | None = None
    ) -> list[AuditRow]:
        return await self._read(partial(audit.select, tenant=tenant, after=after, limit=limit, hold=hold))

    async def audit_head(self, tenant: str) -> tuple[int, bytes]:
        return await self._read(partial(audit.head, tenant=tenant))

    async def audit_tenants(self) -> list[str]:
        return await self._read(audit.tenants)

    async def finish_outbox(
        self,
        message: int,
        *,
        attempt: int,
        state: OutboxState,
        error: str | None = None,
        due_at: int = 0,
        flushed: bool = True,
    ) -> bool:
        given = {"message": message, "attempt": attempt, "state": state, "error": error, "due_at": due_at}
        return await self._write(partial(outbox.finish, **given), single=True, flushed=flushed)

    async def list_outbox(
        self,
        *,
        tenant: str | None = None,
        state: OutboxState | None = None,
        hold: str | None = None,
        topic: str | None = None,
        due_before: int | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[OutboxRow]:
        given = {"tenant": tenant, "state": state, "hold": hold, "topic": topic, "due_before": due_before}
        return await self._read(partial(outbox.select, **given, before=before, limit=limit))

    async def replay_outbox(self, message: int) -> bool:
        return await self._write(partial(outbox.replay, message=message), wakes=True)

    async def put_document(self, document: Document, *, expect: int | None = None) -> Document | None:
        return await self._write(partial(put, document=document, expect=expect), single=True)

    async def document(self, tenant: str, kind: str, name: str) -> Document | None:
        return await self._peek(partial(get, tenant=tenant, kind=kind, name=name))

    async def documents(
        self,
        tenant: str,
        kind: str,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = 1000,
        head: int | None = None,
    ) -> list[Document]:
        which = partial(select, tenant=tenant, kind=kind, prefix=prefix, after=after, limit=limit, head=head)
        return await self._read(which)

    async def drop_document(self, tenant: str, kind: str, name: str, *, expect: int | None = None) -> bool:
        which = partial(drop, tenant=tenant, kind=kind, name=name, expect=expect)
        return await self._write(which, single=True)


async def _append_audit(conn: Conn, _now: int, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
    return await audit.append(conn, tenant, entries)
