"""What a store does for holds: rows changed by one compare-and-set, notes, the audit, the outbox, documents.

The rules of `store.protocols` apply: each method is one transaction and may be called twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

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


class Holds(Protocol):
    async def hold(self, hold: HoldId) -> HoldRow | None: ...

    async def holds(
        self,
        *,
        run: RunId | None = None,
        status: HoldStatus | None = None,
        tenant: str | None = None,
        limit: int = 100,
    ) -> list[HoldRow]:
        """Oldest first."""
        ...

    async def list_holds(
        self,
        where: HoldFilter,
        *,
        order: HoldOrder = HoldOrder.oldest,
        after: Sequence[Any] | None = None,
        limit: int = 50,
    ) -> list[tuple[HoldRow, tuple[Any, ...]]]:
        """Each with its cursor: JSON values for `after`, stable while rows are added and removed (LI-2)."""
        ...

    async def count_holds(self, where: HoldFilter, *, limit: int = 10_000) -> int:
        """The number of holds; counting stops at the limit."""
        ...

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        """Apply the whole change or nothing. Returns the row as it is afterwards. Audit rows are appended to
        the chain of their tenant."""
        ...

    async def due_holds(self, due: Due, *, now: int, limit: int) -> list[HoldRow]:
        """The longest overdue first; no hold of imported history."""
        ...

    async def next_due_hold(self) -> int | None:
        """The earliest instant at which an expiry, a reminder or a placed decision is due."""
        ...

    async def hold_key(self, hold: HoldId, actor: str, key: str) -> HoldKey | None: ...

    async def hold_notes(self, hold: HoldId, *, kinds: Sequence[str] = ()) -> list[Note]:
        """In the order in which they were first written."""
        ...

    async def count_notes(self, holds: Sequence[HoldId], *, kinds: Sequence[str]) -> dict[HoldId, int]:
        """Of these kinds together; a hold without any is left out."""
        ...


class Audit(Protocol):
    async def append_audit(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]: ...

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 1000, hold: str | None = None
    ) -> list[AuditRow]:
        """In order. The database refuses to change or delete a row."""
        ...

    async def audit_head(self, tenant: str) -> tuple[int, bytes]:
        """(seq, hash) of the last row, stored apart from the rows; (0, GENESIS) if there is none."""
        ...

    async def audit_tenants(self) -> list[str]: ...


class Outbox(Protocol):
    """Messages are claimed for a time, sent, and finished. A key that was finished is never claimed again."""

    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        """Messages that wait, are due and are not claimed (or whose claim has expired). They are claimed for
        `lease` microseconds; `attempts` grows by one."""
        ...

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
        """Result of attempt number `attempt`: done, skipped, dead, or waiting again until `due_at`. False if
        another claim was made since. Not `flushed`: a power cut may lose it, for what has no second effect
        when it is done again."""
        ...

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
        """In the order in which they were written; waiting ones by topic and by how long they are overdue.
        With `before`: those with smaller numbers, newest first."""
        ...

    async def replay_outbox(self, message: int) -> bool:
        """Make a dead message wait again, with its attempts reset. False if it is not dead."""
        ...


class Documents(Protocol):
    async def put_document(self, document: Document, *, expect: int | None = None) -> Document | None:
        """Returns the document with its new revision. `expect`: replace only this revision (0: only create);
        returns None if the stored revision is another."""
        ...

    async def document(self, tenant: str, kind: str, name: str) -> Document | None: ...

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
        """In order of name. `head`: only so many bytes of each body."""
        ...

    async def drop_document(self, tenant: str, kind: str, name: str, *, expect: int | None = None) -> bool:
        """`expect`: only this revision."""
        ...
