"""The audit, the outbox and documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.memory.settle import MemoryRunHolds
from holdfast.types.audit import GENESIS
from holdfast.types.outbox import OutboxState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.types.audit import AuditRow, NewAudit
    from holdfast.types.document import Document
    from holdfast.types.outbox import OutboxRow


class MemoryAudit(MemoryRunHolds):
    async def append_audit(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
        with self._lock:
            return self._chain(tenant, entries)

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 1000, hold: str | None = None
    ) -> list[AuditRow]:
        with self._lock:
            chain = self._audit.get(tenant, [])[max(after, 0) :]
        return [row for row in chain if hold is None or row.hold == hold][:limit]

    async def audit_head(self, tenant: str) -> tuple[int, bytes]:
        with self._lock:
            chain = self._audit.get(tenant)
            return (chain[-1].seq, chain[-1].hash) if chain else (0, GENESIS)

    async def audit_tenants(self) -> list[str]:
        with self._lock:
            return sorted(tenant for tenant, chain in self._audit.items() if chain)

    # ------------------------------------------------------------------ the outbox
    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        with self._lock:
            now = self._now()
            due = [row for row in self._outbox.values() if _is_due(row, now) and _in(row.topic, topics)]
            claimed: list[OutboxRow] = []
            for row in sorted(due, key=lambda row: (row.due_at, row.id))[:limit]:
                taken = replace(row, claimed_until=now + lease, attempts=row.attempts + 1)
                self._outbox[row.id] = taken
                claimed.append(taken)
            return claimed

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
        with self._lock:
            row = self._outbox.get(message)
            if row is None or row.attempts != attempt or row.state is not OutboxState.waiting:
                return False
            due = due_at if state is OutboxState.waiting else row.due_at
            self._outbox[message] = replace(row, state=state, error=error, due_at=due, claimed_until=None)
            return True

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
        with self._lock:
            found = [
                row
                for row in self._outbox.values()
                if (tenant is None or row.tenant == tenant)
                and (state is None or row.state is state)
                and (hold is None or row.hold == hold)
                and (topic is None or row.topic == topic)
                and (due_before is None or row.due_at < due_before)
                and (before is None or row.id < before)
            ]
        if before is not None:
            return sorted(found, key=_when_written, reverse=True)[:limit]
        by_due = state is OutboxState.waiting and hold is None
        return sorted(found, key=_when_due if by_due else _when_written)[:limit]

    async def replay_outbox(self, message: int) -> bool:
        with self._lock:
            row = self._outbox.get(message)
            if row is None or row.state is not OutboxState.dead:
                return False
            again = replace(
                row, state=OutboxState.waiting, attempts=0, due_at=self._now(), error=None, claimed_until=None
            )
            self._outbox[message] = again
        self._changes.notify()
        return True

    # ------------------------------------------------------------------ documents
    async def put_document(self, document: Document, *, expect: int | None = None) -> Document | None:
        with self._lock:
            place = (document.tenant, document.kind, document.name)
            known = self._documents.get(place)
            revision = 0 if known is None else known.revision
            if expect is not None and expect != revision:
                return None
            written = replace(document, revision=revision + 1, updated_at=self._now())
            self._documents[place] = written
            return written

    async def document(self, tenant: str, kind: str, name: str) -> Document | None:
        with self._lock:
            return self._documents.get((tenant, kind, name))

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
        with self._lock:
            found = [
                document
                for (whose, what, name), document in self._documents.items()
                if (whose, what) == (tenant, kind) and name.startswith(prefix) and name > after
            ]
        shown = sorted(found, key=lambda document: document.name)[:limit]
        return shown if head is None else [replace(each, body=each.body[:head]) for each in shown]

    async def drop_document(self, tenant: str, kind: str, name: str, *, expect: int | None = None) -> bool:
        with self._lock:
            found = self._documents.get((tenant, kind, name))
            if found is None or expect not in (None, found.revision):
                return False
            del self._documents[tenant, kind, name]
            return True


def _when_written(row: OutboxRow) -> int:
    return row.id


def _when_due(row: OutboxRow) -> tuple[str, int, int]:
    return row.topic, row.due_at, row.id


def _is_due(row: OutboxRow, now: int) -> bool:
    claimed = row.claimed_until is not None and row.claimed_until > now
    return row.state is OutboxState.waiting and row.due_at <= now and not claimed


def _in(topic: str, topics: Sequence[str]) -> bool:
    return not topics or topic in topics
