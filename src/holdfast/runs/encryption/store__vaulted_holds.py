"""The part of an encrypted store that is about people: holds, the audit, the outbox, documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast.errors import InputError, KeyMissingError
from holdfast.runs.encryption import cipher__vault_holds
from holdfast.runs.encryption.cipher import Vault
from holdfast.store.protocols import Store
from holdfast.types.audit import AuditRow, NewAudit
from holdfast.types.clock import MICROS
from holdfast.types.document import Document
from holdfast.types.hold import (
    Due,
    HoldChange,
    HoldFilter,
    HoldKey,
    HoldOrder,
    HoldRow,
    Note,
    Unchanged,
)
from holdfast.types.ids import HoldId, RunId
from holdfast.types.outbox import OutboxRow, OutboxState
from holdfast.types.status import HoldStatus

READ_AT_MOST = 10_000
_PAGE = 500
_LATER = 600 * MICROS
_DECIDES = frozenset({"resolution", "placed"})
Listed = tuple[HoldRow, tuple[Any, ...]]


class VaultedHolds:
    """Method by method; what carries no content goes straight to the store within."""

    inner: Store
    vault: Vault

    async def stands(self, digest: bytes, tenant: str) -> bytes:
        """The address at which a blob of this tenant is found; where it is not, the one for a new blob."""
        places = self.vault.places(digest, tenant)
        for place in places:
            if await self.inner.blob(place) is not None:
                return place
        return places[0]

    async def hold(self, hold: HoldId) -> HoldRow | None:
        row = await self.inner.hold(hold)
        return None if row is None else self.vault.open_hold(row)

    async def holds(
        self,
        *,
        run: RunId | None = None,
        status: HoldStatus | None = None,
        tenant: str | None = None,
        limit: int = 100,
    ) -> list[HoldRow]:
        rows = await self.inner.holds(run=run, status=status, tenant=tenant, limit=limit)
        return [self._listed(row) for row in rows]

    def _listed(self, row: HoldRow) -> HoldRow:
        """Holds that cannot be read are still listed, and say why; whoever decides one is refused."""
        try:
            return self.vault.open_hold(row)
        except KeyMissingError as error:
            shown = f"(encrypted under key {error.facts.get('key')}, which is not here)"
            return replace(
                row, prompt=shown, options=None, context=b"{}", schema=None, resolution=None, placed=None
            )

    async def list_holds(
        self,
        where: HoldFilter,
        *,
        order: HoldOrder = HoldOrder.oldest,
        after: Sequence[Any] | None = None,
        limit: int = 50,
    ) -> list[Listed]:
        if not where.text:
            found = await self.inner.list_holds(where, order=order, after=after, limit=limit)
            return [(self._listed(row), place) for row, place in found]
        shown: list[Listed] = []
        async for listed in self._with_text(where, order, after):
            shown.append(listed)
            if len(shown) == limit:
                break
        return shown

    async def count_holds(self, where: HoldFilter, *, limit: int = 10_000) -> int:
        if not where.text:
            return await self.inner.count_holds(where, limit=limit)
        counted = 0
        async for _ in self._with_text(where, HoldOrder.oldest, None):
            counted += 1
            if counted == limit:
                break
        return counted

    async def _with_text(
        self, where: HoldFilter, order: HoldOrder, after: Sequence[Any] | None
    ) -> AsyncIterator[Listed]:
        """Only here can prompts be read: all that the other filters leave are opened, page by page.

        Raises InputError where these are too many to go through."""
        wanted, plain = (where.text or "").casefold(), replace(where, text=None)
        for _ in range(READ_AT_MOST // _PAGE):
            page = await self.inner.list_holds(plain, order=order, after=after, limit=_PAGE)
            for row, place in page:
                opened = self._listed(row)
                if wanted in opened.prompt.casefold():
                    yield opened, place
            if len(page) < _PAGE:
                return
            after = page[-1][1]
        raise InputError(
            f"the prompts are encrypted, and more than {READ_AT_MOST} holds would have to be opened to find "
            f"{where.text!r}.",
            hint="Narrow the search: by status, assignee, flow or time.",
        )

    async def change_hold(self, change: HoldChange) -> HoldRow | Unchanged:
        row = await self.inner.hold(change.hold)
        if row is None:
            return Unchanged.unknown
        if change.fields.keys() & _DECIDES:
            # Whoever decides must have been able to read what was asked.
            self.vault.open_hold(row)
        closed = cipher__vault_holds.close_change(self.vault, change, row)
        blobs = tuple([await self.stands(digest, row.tenant) for digest in change.blobs])
        changed = await self.inner.change_hold(replace(closed, blobs=blobs))
        return self._listed(changed) if isinstance(changed, HoldRow) else changed

    async def due_holds(self, due: Due, *, now: int, limit: int) -> list[HoldRow]:
        return [self._listed(row) for row in await self.inner.due_holds(due, now=now, limit=limit)]

    async def hold_key(self, hold: HoldId, actor: str, key: str) -> HoldKey | None:
        found = await self.inner.hold_key(hold, actor, key)
        return None if found is None else cipher__vault_holds.open_key(self.vault, found, hold)

    async def hold_notes(self, hold: HoldId, *, kinds: Sequence[str] = ()) -> list[Note]:
        found = await self.inner.hold_notes(hold, kinds=kinds)
        return [cipher__vault_holds.open_note(self.vault, note) for note in found]

    # ------------------------------------------------------------------ the audit
    async def append_audit(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
        closed = [cipher__vault_holds.close_audit(self.vault, entry, tenant) for entry in entries]
        return self._told(await self.inner.append_audit(tenant, closed))

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 1000, hold: str | None = None
    ) -> list[AuditRow]:
        return self._told(await self.inner.audit(tenant, after=after, limit=limit, hold=hold))

    def _told(self, rows: list[AuditRow]) -> list[AuditRow]:
        return [cipher__vault_holds.open_audit(self.vault, row) for row in rows]

    # ------------------------------------------------------------------ the outbox
    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        opened: list[OutboxRow] = []
        for row in await self.inner.claim_outbox(limit=limit, lease=lease, topics=topics):
            try:
                opened.append(cipher__vault_holds.open_message(self.vault, row))
            except KeyMissingError as error:
                await self._wait_for_key(row, str(error))
        return opened

    async def _wait_for_key(self, row: OutboxRow, why: str) -> None:
        """It holds up nobody else's messages, and is told once the key is here."""
        await self.inner.finish_outbox(
            row.id,
            attempt=row.attempts,
            state=OutboxState.waiting,
            error=why,
            due_at=self.inner.now() + _LATER,
        )

    async def list_outbox(
        self,
        *,
        tenant: str | None = None,
        state: OutboxState | None = None,
        hold: str | None = None,
        limit: int = 100,
    ) -> list[OutboxRow]:
        found = await self.inner.list_outbox(tenant=tenant, state=state, hold=hold, limit=limit)
        return [self._shown(row) for row in found]

    def _shown(self, row: OutboxRow) -> OutboxRow:
        """Messages that cannot be read are still listed, and say why."""
        try:
            return cipher__vault_holds.open_message(self.vault, row)
        except KeyMissingError as error:
            return replace(row, payload=b"{}", error=str(error))

    # ------------------------------------------------------------------ documents
    async def put_document(self, document: Document, *, expect: int | None = None) -> Document | None:
        closed = cipher__vault_holds.close_document(self.vault, document)
        written = await self.inner.put_document(closed, expect=expect)
        return None if written is None else cipher__vault_holds.open_document(self.vault, written)

    async def document(self, tenant: str, kind: str, name: str) -> Document | None:
        found = await self.inner.document(tenant, kind, name)
        return None if found is None else cipher__vault_holds.open_document(self.vault, found)

    async def documents(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[Document]:
        found = await self.inner.documents(tenant, kind, prefix=prefix, after=after, limit=limit)
        return [cipher__vault_holds.open_document(self.vault, document) for document in found]
