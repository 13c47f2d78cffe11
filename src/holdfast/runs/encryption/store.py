"""A store whose content is encrypted: it wraps any other, which never sees a plain value.

Without keys there is no such store, and nothing of this is called.

The part of an encrypted store that is about people: holds, the audit, the outbox, documents.

The part of an encrypted store that is about schedules: what one starts, and with what, is content.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from msgspec.structs import replace

from holdfast.errors import InputError, KeyMissingError
from holdfast.runs.encryption import cipher
from holdfast.runs.encryption.cipher import FieldCipher
from holdfast.store.protocols import Claim, ClaimRequest, NewRun, RunFilter, RunHistory, RunRow, Store
from holdfast.types.audit import AuditRow, NewAudit
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.clock import MICROS
from holdfast.types.document import Document
from holdfast.types.event import EventRow
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
from holdfast.types.ids import DEFAULT_TENANT, HoldId, RunId
from holdfast.types.memory import Memory, words
from holdfast.types.outbox import OutboxRow, OutboxState
from holdfast.types.projection import Projection
from holdfast.types.record import InboxRow, Record, RunBatch, SettleAnswer
from holdfast.types.schedule import ScheduleRow
from holdfast.types.status import HoldStatus

READ_AT_MOST = 10_000
_PAGE = 500
_LATER = 600 * MICROS
_DECIDES = frozenset({"resolution", "placed"})
HoldAndSortKey = tuple[HoldRow, tuple[Any, ...]]


class EncryptedHolds:
    """Method by method; what carries no content goes straight to the store within."""

    inner: Store
    vault: FieldCipher

    async def stands(self, digest: bytes, tenant: str) -> bytes:
        """The address at which a blob of this tenant is found; where it is not, the one for a new blob."""
        places = self.vault.places(digest, tenant)
        for place in places:
            if await self.inner.blob(place) is not None:
                return place
        return places[0]

    async def hold(self, hold: HoldId) -> HoldRow | None:
        row = await self.inner.hold(hold)
        return None if row is None else self.vault.decrypt_hold(row)

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
            return self.vault.decrypt_hold(row)
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
    ) -> list[HoldAndSortKey]:
        if not where.text:
            found = await self.inner.list_holds(where, order=order, after=after, limit=limit)
            return [(self._listed(row), place) for row, place in found]
        shown: list[HoldAndSortKey] = []
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
    ) -> AsyncIterator[HoldAndSortKey]:
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

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        row = await self.inner.hold(change.hold)
        if row is None:
            return ChangeRefusal.unknown
        if change.fields.keys() & _DECIDES:
            # Whoever decides must have been able to read what was asked.
            self.vault.decrypt_hold(row)
        closed = cipher.encrypt_change(self.vault, change, row)
        blobs = tuple([await self.stands(digest, row.tenant) for digest in change.blobs])
        changed = await self.inner.change_hold(replace(closed, blobs=blobs))
        return self._listed(changed) if isinstance(changed, HoldRow) else changed

    async def due_holds(self, due: Due, *, now: int, limit: int) -> list[HoldRow]:
        return [self._listed(row) for row in await self.inner.due_holds(due, now=now, limit=limit)]

    async def hold_key(self, hold: HoldId, actor: str, key: str) -> HoldKey | None:
        found = await self.inner.hold_key(hold, actor, key)
        return None if found is None else cipher.decrypt_key(self.vault, found, hold)

    async def hold_notes(self, hold: HoldId, *, kinds: Sequence[str] = ()) -> list[Note]:
        found = await self.inner.hold_notes(hold, kinds=kinds)
        return [cipher.decrypt_note(self.vault, note) for note in found]

    # ------------------------------------------------------------------ the audit
    async def append_audit(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
        closed = [cipher.encrypt_audit(self.vault, entry, tenant) for entry in entries]
        return self._told(await self.inner.append_audit(tenant, closed))

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 1000, hold: str | None = None
    ) -> list[AuditRow]:
        return self._told(await self.inner.audit(tenant, after=after, limit=limit, hold=hold))

    def _told(self, rows: list[AuditRow]) -> list[AuditRow]:
        return [cipher.decrypt_audit(self.vault, row) for row in rows]

    # ------------------------------------------------------------------ the outbox
    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        opened: list[OutboxRow] = []
        for row in await self.inner.claim_outbox(limit=limit, lease=lease, topics=topics):
            try:
                opened.append(cipher.decrypt_message(self.vault, row))
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
            return cipher.decrypt_message(self.vault, row)
        except KeyMissingError as error:
            return replace(row, payload=b"{}", error=str(error))

    # ------------------------------------------------------------------ documents
    async def put_document(self, document: Document, *, expect: int | None = None) -> Document | None:
        closed = cipher.encrypt_document(self.vault, document)
        written = await self.inner.put_document(closed, expect=expect)
        return None if written is None else cipher.decrypt_document(self.vault, written)

    async def document(self, tenant: str, kind: str, name: str) -> Document | None:
        found = await self.inner.document(tenant, kind, name)
        return None if found is None else cipher.decrypt_document(self.vault, found)

    async def documents(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[Document]:
        found = await self.inner.documents(tenant, kind, prefix=prefix, after=after, limit=limit)
        return [cipher.decrypt_document(self.vault, document) for document in found]


class EncryptedSchedules:
    inner: Store
    vault: FieldCipher

    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        place = ("schedule", row.tenant, row.name)
        closed = replace(row, body=self.vault.close(row.body, row.tenant, *place))
        written = await self.inner.put_schedule(closed, expect=expect)
        return None if written is None else replace(written, body=row.body)

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None:
        found = await self.inner.schedule(tenant, name)
        return None if found is None else self._opened(found)

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        return [
            self._decrypted_or_closed(row)
            for row in await self.inner.schedules(tenant, after=after, limit=limit)
        ]

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        return [self._decrypted_or_closed(row) for row in await self.inner.due_schedules(flows, limit=limit)]

    def _opened(self, row: ScheduleRow) -> ScheduleRow:
        return replace(row, body=self.vault.open(row.body, "schedule", row.tenant, row.name))

    def _decrypted_or_closed(self, row: ScheduleRow) -> ScheduleRow:
        """Of several, those whose key is not here stay closed: the others must not wait for them."""
        try:
            return self._opened(row)
        except KeyMissingError:
            return row


_KNOWN = 10_000
_ALL = 1_000_000


class EncryptedStore(EncryptedHolds, EncryptedSchedules):
    """`Store`, method by method; what carries no content goes straight to the store within."""

    def __init__(self, inner: Store, vault: FieldCipher) -> None:
        self.inner = inner
        self.vault = vault
        self.capabilities = inner.capabilities
        # For whoever wraps us and hands on what it does not know.
        self.within_vault = self
        # A run's tenant never changes; a settle names only the run.
        self._tenants: dict[RunId, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    # ------------------------------------------------------------------ whose
    async def tenant_of(self, run: RunId) -> str:
        known = self._tenants.get(run)
        if known is not None:
            return known
        row = await self.inner.get_run(run)
        # Nothing is kept for a run that is not there: whose it would be does not matter.
        return DEFAULT_TENANT if row is None else self._learn(row).tenant

    def _learn(self, row: RunRow) -> RunRow:
        if len(self._tenants) >= _KNOWN:
            self._tenants.clear()
        self._tenants[row.id] = row.tenant
        return row

    def known_tenants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((DEFAULT_TENANT, *self._tenants.values())))

    def _seen(self, row: RunRow) -> RunRow:
        return self.vault.decrypt_row(self._learn(row))

    # ------------------------------------------------------------------ runs
    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        first = [await self._closed(record, new.tenant, new.id) for record in new.first]
        row, fresh = await self.inner.create(replace(new, first=first))
        return self._seen(row), fresh

    async def get_run(self, run: RunId) -> RunRow | None:
        row = await self.inner.get_run(run)
        return None if row is None else self._seen(row)

    async def find_runs(self, prefix: str) -> list[RunRow]:
        return [self._seen(row) for row in await self.inner.find_runs(prefix)]

    async def list_runs(self, where: RunFilter, *, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
        return [
            self.vault.decrypt_row(row) for row in await self.inner.list_runs(where, after=after, limit=limit)
        ]

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        if want.run is not None:
            await self._require_readable(want.run)
        return [replace(claim, run=self._seen(claim.run)) for claim in await self.inner.claim(want)]

    async def _require_readable(self, run: RunId) -> None:
        """Before it is claimed, so that a run whose key is not here keeps its status."""
        row = await self.inner.get_run(run)
        if row is not None:
            await self.read(run, first=row.head, last=row.head)

    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        rows = await self.inner.reclaim(limit=limit, max_recoveries=max_recoveries, backoff=backoff)
        return [self._seen(row) for row in rows]

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        tenant = DEFAULT_TENANT if want.run is None else await self.tenant_of(want.run)
        told = (
            None if event is None or want.run is None else self.vault.encrypt_event(event, tenant, want.run)
        )
        claim = await self.inner.claim_dead(want, event=told)
        return None if claim is None else replace(claim, run=self._seen(claim.run))

    # ------------------------------------------------------------------ the journal
    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        return await self.inner.settle([await self._encrypted_batch(batch) for batch in batches])

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        """Where blobs are named they have to be looked up, which takes a moment: then not at once."""
        closed: list[RunBatch] = []
        for batch in batches:
            tenant = self._tenants.get(batch.lease.run)
            if tenant is None or any(r.side is not None and r.side.blobs for r in batch.records):
                return None
            records = [self._encrypted_now(record, tenant, batch.lease.run, []) for record in batch.records]
            closed.append(replace(batch, records=records))
        return self.inner.settle_now(closed)

    async def _encrypted_batch(self, batch: RunBatch) -> RunBatch:
        run = batch.lease.run
        tenant = await self.tenant_of(run)
        return replace(batch, records=[await self._closed(record, tenant, run) for record in batch.records])

    async def _closed(self, record: Record, tenant: str, run: str) -> Record:
        blobs = [] if record.side is None else [await self.stands(d, tenant) for d in record.side.blobs]
        return self._encrypted_now(record, tenant, run, blobs)

    def _encrypted_now(self, record: Record, tenant: str, run: str, blobs: list[bytes]) -> Record:
        closed = self.vault.encrypt_record(record, tenant, run)
        if record.side is not None:
            closed.side = self.vault.encrypt_side(record.side, tenant, run, blobs)
        return closed

    async def read(
        self, run: RunId, *, first: int = 0, last: int | None = None, payloads: bool = True
    ) -> list[Record]:
        records = await self.inner.read(run, first=first, last=last, payloads=payloads)
        return [self.vault.decrypt_record(record, run) for record in records]

    def read_now(self, run: RunId, *, first: int, last: int) -> list[Record]:
        found = self.inner.read_now(run, first=first, last=last)
        return [self.vault.decrypt_record(record, run) for record in found]

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Record | EventRow]:
        found = await self.inner.events(run, after=after, limit=limit)
        return [self.vault.decrypt_record_or_event(told, run) for told in found]

    async def prune(
        self,
        run: RunId,
        *,
        horizon: int,
        replace: Record | None,
        ended: bool = False,
        blobs: Sequence[bytes] | None = None,
    ) -> int:
        tenant = await self.tenant_of(run)
        closed = None if replace is None else await self._closed(replace, tenant, run)
        # Wherever they lie: what was written before there were keys keeps its place.
        kept = None if blobs is None else [p for digest in blobs for p in self.vault.places(digest, tenant)]
        return await self.inner.prune(run, horizon=horizon, replace=closed, ended=ended, blobs=kept)

    # ------------------------------------------------------------------ mail and evidence
    async def send(
        self,
        run: RunId,
        kind: str,
        payload: bytes,
        *,
        dedupe: str | None = None,
        event: EventRow | None = None,
    ) -> bool:
        tenant = await self.tenant_of(run)
        told = None if event is None else self.vault.encrypt_event(event, tenant, run)
        closed = self.vault.close(payload, tenant, "inbox", run, kind)
        return await self.inner.send(run, kind, closed, dedupe=dedupe, event=told)

    async def pending(self, run: RunId) -> tuple[int, list[InboxRow]]:
        seen, rows = await self.inner.pending(run)
        return seen, [self.vault.decrypt_inbox_row(row, run) for row in rows]

    async def report_late(self, run: RunId, seq: int, payload: bytes) -> None:
        if (seq, payload) in await self.late_reports(run):
            return  # told before: no two ciphertexts are alike, so only here can this be seen
        tenant = await self.tenant_of(run)
        await self.inner.report_late(run, seq, self.vault.close(payload, tenant, "late", run, seq))

    async def late_reports(self, run: RunId) -> list[tuple[int, bytes]]:
        return [
            (seq, self.vault.open(data, "late", run, seq)) for seq, data in await self.inner.late_reports(run)
        ]

    # ------------------------------------------------------------------ moving
    async def history(self, run: RunId) -> RunHistory | None:
        found = await self.inner.history(run)
        return None if found is None else self.vault.decrypt_history(found)

    async def adopt(self, history: RunHistory) -> tuple[RunRow, bool]:
        vault, run, tenant = self.vault, history.run.id, history.run.tenant
        error = history.run.error
        closed = replace(
            history,
            run=replace(history.run, error=error and vault.encrypt_text(error, tenant, "error", run)),
            records=[vault.encrypt_record(record, tenant, run) for record in history.records],
            events=[vault.encrypt_event(event, tenant, run) for event in history.events],
            holds=[vault.encrypt_hold(hold, tenant) for hold in history.holds],
            late=[(seq, vault.close(data, tenant, "late", run, seq)) for seq, data in history.late],
            blobs=[await self.stands(digest, tenant) for digest in history.blobs],
        )
        row, fresh = await self.inner.adopt(closed)
        return self._seen(row), fresh

    # ------------------------------------------------------------------ blobs and memories
    async def put_memory(self, memory: Memory) -> None:
        await self.inner.put_memory(self.vault.encrypt_memory(memory))

    async def find_memories(self, *, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        """Only here can the words be read: the store gives all of the scope, in its order."""
        found = await self.inner.find_memories(tenant=tenant, scope=scope, query="", limit=_ALL)
        opened = (self.vault.decrypt_memory(memory) for memory in found)
        wanted = words(query)
        fitting = [m for m in opened if all(word in m.content.casefold() for word in wanted)]
        return fitting[:limit]

    # ------------------------------------------------------------------ for SQL
    async def put_projections(self, rows: Sequence[Projection], *, upto: int) -> None:
        """Only what is in plain columns anyway: content leaves the vault for nobody."""
        if self.vault.ring is not None:
            rows = [replace(row, node_states=None, original_input=None, output=None) for row in rows]
        await self.inner.put_projections(rows, upto=upto)


def with_encryption(inner: Store, vault: FieldCipher) -> Store:
    """A store that is encrypted already, also within another one, stays as it is."""
    return inner if encrypted_store_within(inner) is not None else cast("Store", EncryptedStore(inner, vault))


def encrypted_store_within(store: Store) -> EncryptedStore | None:
    """The encrypted store that this is, or that it hands its calls on to."""
    return store if isinstance(store, EncryptedStore) else getattr(store, "within_vault", None)


async def holds_ciphertext(store: Store) -> bool:
    """Whether the newest run of a store is encrypted: then nobody may write to it without a key."""
    for row in await store.list_runs(RunFilter(), after=None, limit=1):
        records = await store.read(row.id, first=row.horizon, last=row.horizon)
        return any(is_encrypted(record.payload) for record in records)
    return False
