"""A store whose content is encrypted: it wraps another store, which never sees a plain value.

Three tables and the methods written out below cover every method of a store; a method in no table does not
exist here, so that new content cannot be stored in the clear unnoticed (`tests/storage` walks the protocol).
Without keys there is no such store, and none of this is called.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from holdfast.errors import InputError, KeyMissingError
from holdfast.runs.encryption.cipher import FieldCipher
from holdfast.runs.encryption.detect import encrypted_store_within
from holdfast.runs.encryption.graph_threads import EncryptedGraphThreads
from holdfast.store.protocols import Store
from holdfast.store.rows import Claim, ClaimRequest, NewRun, RunHistory, RunMove, RunRow
from holdfast.types.audit import AuditRow
from holdfast.types.clock import MICROS
from holdfast.types.document import Document
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.hold import (
    ChangeRefusal,
    HoldChange,
    HoldFilter,
    HoldKey,
    HoldOrder,
    HoldRow,
    Note,
    has_text,
)
from holdfast.types.ids import DEFAULT_TENANT, RunId
from holdfast.types.memory import Memory, words
from holdfast.types.outbox import OutboxMessage, OutboxRow, OutboxState
from holdfast.types.projection import Projection
from holdfast.types.queue_message import (
    EndNotice,
    MessageChange,
    MessageRefusal,
    MessageRow,
    MessageSweep,
    NewMessage,
)
from holdfast.types.record import InboxRow, Record, RunBatch, SettleAnswer
from holdfast.types.schedule import ScheduleRow

READ_AT_MOST = 10_000
_PAGE = 500
_HEADS = 10
# When to try a message again whose key is missing: a person has to add it, so there is no hurry.
_LATER = 600 * MICROS
_DECIDES = frozenset({"resolution", "placed"})
# Entries of the cache of run -> tenant.
_KNOWN_TENANTS = 10_000
_ALL = 1_000_000
HoldAndSortKey = tuple[HoldRow, tuple[Any, ...]]


class WrappedMethod(msgspec.Struct, frozen=True):
    """How a method is made: which argument is encrypted, and what its rows and results are bound to.

    Results are decrypted whether they are a row, a list of rows or None."""

    rows: tuple[type, ...]
    argument: int | None = None  # the number of the argument with rows to encrypt
    bound: str = ""  # the name of the first argument, where rows are bound to it
    inline: bool = False  # at once in the caller's thread


def out(*rows: type, bound: str = "", inline: bool = False) -> WrappedMethod:
    """Such rows come out of the store."""
    return WrappedMethod(rows, None, bound, inline)


def both(row: type, argument: int = 0, bound: str = "") -> WrappedMethod:
    """Such rows go into the store, and may come out."""
    return WrappedMethod((row,), argument, bound)


METHODS = {
    "get_run": out(RunRow),
    "find_runs": out(RunRow),
    "list_runs": out(RunRow),
    "reclaim": out(RunRow),
    "leases_ahead": out(RunRow),
    "lost_history": out(RunRow),
    "read": out(Record, bound="run"),
    "read_now": out(Record, bound="run", inline=True),
    "checkpoint_records": out(Record, bound="run"),
    "events": out(Record, EventRow, bound="run"),
    "hold": out(HoldRow),
    "holds": out(HoldRow),
    "due_holds": out(HoldRow),
    "hold_key": out(HoldKey, bound="hold"),
    "hold_notes": out(Note),
    "append_audit": both(AuditRow, argument=1, bound="tenant"),
    "audit": out(AuditRow),
    "list_outbox": out(OutboxRow),
    "put_document": both(Document),
    "document": out(Document),
    "queue_message": out(MessageRow),
    "list_messages": out(MessageRow),
    "ready_messages": out(MessageRow),
    "claim_messages": out(MessageRow),
    "put_schedule": both(ScheduleRow),
    "schedule": out(ScheduleRow),
    "schedules": out(ScheduleRow),
    "due_schedules": out(ScheduleRow),
    "put_memory": both(Memory),
}

# No content goes in or comes out. Graphs and code digests are of the flow, not of its runs. Blobs are
# encrypted by `runs.blobs` before they come here, and re-encryption handles ciphertext as it is stored.
PLAIN = frozenset({
    "now", "close", "examine", "durability", "wait_change", "free_space",
    "extend", "extend_now", "park", "set_idle", "change_limit", "delete_run", "list_threads", "count_runs",
    "last_snapshot", "event_heads", "feed", "trim_feed",
    "inbox_heads", "fire_timers", "next_timer", "wake_times", "next_due_hold", "count_notes",
    "audit_head", "audit_tenants", "finish_outbox", "replay_outbox", "drop_document",
    "queue_counts", "queue_changes", "wait_queues",
    "put_limit", "limits", "drop_limit", "next_schedule", "drop_schedule",
    "put_worker", "workers", "drop_worker", "deaths", "fleet_figures", "ended_runs", "hold_times",
    "waiting_runs", "tell_missing", "tell_run", "tell_taken",
    "next_suspect", "end_isolation", "expire_leases", "correct_ready_times",
    "graph_threads", "drop_graph_rows", "copy_graph_thread", "claim_graph_thread",
    "extend_graph_claims", "release_graph_claim",
    "put_flow", "flow", "flows", "put_code", "code",
    "put_blob", "blob", "keep_blob", "condemn_blobs", "drop_blobs",
    "projected_to", "projections", "blank_projections",
    "stored_rows", "rewrite", "blobs_of", "replace_blob_reference", "replace_blob",
})  # fmt: skip


class EncryptedStore(EncryptedGraphThreads):
    """`Store`. The methods of `METHODS` and `PLAIN` are made below; these are the others."""

    def __init__(self, inner: Store, cipher: FieldCipher) -> None:
        self.inner = inner
        self.cipher = cipher
        self.capabilities = inner.capabilities
        # For stores that wrap this one and forward what they do not know (`encrypted_store_within`).
        self.encrypted_store = self
        # A run's tenant never changes; a settle names only the run.
        self._tenants: dict[RunId, str] = {}

    # ------------------------------------------------------------------ tenants and addresses
    async def tenant_of(self, run: RunId) -> str:
        known = self._tenants.get(run)
        if known is not None:
            return known
        row = await self.inner.get_run(run)
        # Nothing is stored for a run that does not exist, so its tenant does not matter.
        return DEFAULT_TENANT if row is None else self._remember(row).tenant

    def _remember(self, row: RunRow) -> RunRow:
        if len(self._tenants) >= _KNOWN_TENANTS:
            del self._tenants[next(iter(self._tenants))]
        self._tenants[row.id] = row.tenant
        return row

    def known_tenants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((DEFAULT_TENANT, *self._tenants.values())))

    async def blob_address(self, digest: bytes, tenant: str) -> bytes:
        """The address at which a blob of this tenant is stored; where it is not, the one for a new blob."""
        places = self.cipher.places(digest, tenant)
        for place in places:
            if await self.inner.blob(place) is not None:
                return place
        return places[0]

    # ------------------------------------------------------------------ rows
    def decrypted(self, found: Any, known: Mapping[str, str]) -> Any:
        """A result of the inner store. In a list, rows whose key is missing are marked as such."""
        if isinstance(found, list):
            return [self._decrypted_row(row, known, listed=True) for row in cast("list[Any]", found)]
        return None if found is None else self._decrypted_row(found, known, listed=False)

    def _decrypted_row(self, row: Any, known: Mapping[str, str], *, listed: bool) -> Any:
        if isinstance(row, Record):
            return self.cipher.decrypt_record(row, known["run"])
        if isinstance(row, RunRow):
            # Runs can be read without a key: only the text of their error is content.
            return self.cipher.decrypt_or_mark(self._remember(row))
        if isinstance(row, AuditRow):
            return self.cipher.decrypt_audit(row)
        return self.cipher.decrypt_or_mark(row, **known) if listed else self.cipher.decrypt(row, **known)

    def encrypted(self, given: Any, known: Mapping[str, str]) -> Any:
        """An argument for the inner store: a row, or several."""
        if isinstance(given, msgspec.Struct):
            return self.cipher.encrypt(given, known.get("tenant") or cast("Any", given).tenant)
        return [self.encrypted(row, known) for row in given]

    def _run(self, row: RunRow) -> RunRow:
        return self._decrypted_row(row, {}, listed=False)

    # ------------------------------------------------------------------ runs
    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        first = [await self._encrypted_record(record, new.tenant, new.id) for record in new.first]
        row, fresh = await self.inner.create(replace(new, first=first))
        return self._run(row), fresh

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        if want.run is not None:
            await self._require_readable(want.run)
        return [replace(claim, run=self._run(claim.run)) for claim in await self.inner.claim(want)]

    async def _require_readable(self, run: RunId) -> None:
        """Before it is claimed, so that a run whose key is missing keeps its status."""
        row = await self.inner.get_run(run)
        if row is not None:
            for record in await self.inner.read(run, first=row.head, last=row.head):
                self.cipher.decrypt_record(record, run)

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        encrypted = None
        if event is not None and want.run is not None:
            encrypted = self.cipher.encrypt(event, await self.tenant_of(want.run), run=want.run)
        claim = await self.inner.claim_dead(want, event=encrypted)
        return None if claim is None else replace(claim, run=self._run(claim.run))

    async def move_run(self, move: RunMove) -> RunRow | None:
        await self._require_readable(move.run)
        tenant = await self.tenant_of(move.run)
        encrypted = replace(
            move,
            event=self.cipher.encrypt(move.event, tenant, run=move.run),
            outbox=[self.cipher.encrypt(message, tenant) for message in move.outbox],
        )
        if move.resume is not None:
            resume = self.cipher.encrypt_bytes(move.resume, tenant, "inbox", move.run, "resume")
            encrypted = replace(encrypted, resume=resume)
        row = await self.inner.move_run(encrypted)
        return None if row is None else self._run(row)

    async def mark_dead(self, run: RunId, *, death: Death, event: EventRow) -> bool:
        encrypted = self.cipher.encrypt(event, await self.tenant_of(run), run=run)
        return await self.inner.mark_dead(run, death=death, event=encrypted)

    async def history(self, run: RunId) -> RunHistory | None:
        found = await self.inner.history(run)
        return None if found is None else self.cipher.decrypt_history(found)

    async def adopt(self, history: RunHistory) -> tuple[RunRow, bool]:
        cipher, run, tenant = self.cipher, history.run.id, history.run.tenant
        encrypted = replace(
            history,
            run=cipher.encrypt(history.run, tenant),
            records=[cipher.encrypt_record(record, tenant, run) for record in history.records],
            events=[cipher.encrypt(event, tenant, run=run) for event in history.events],
            holds=[cipher.encrypt(hold, tenant) for hold in history.holds],
            late=[(seq, cipher.encrypt_bytes(data, tenant, "late", run, seq)) for seq, data in history.late],
            blobs=[await self.blob_address(digest, tenant) for digest in history.blobs],
        )
        row, fresh = await self.inner.adopt(encrypted)
        return self._run(row), fresh

    # ------------------------------------------------------------------ documents
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
        """The head of a body is known only with all of it: then a few are read at a time."""
        step, found = limit if head is None else min(limit, _HEADS), list[Document]()
        while len(found) < limit:
            some = min(step, limit - len(found))
            page = await self.inner.documents(tenant, kind, prefix=prefix, after=after, limit=some)
            shown: list[Document] = self.decrypted(page, {})
            found += shown if head is None else [replace(each, body=each.body[:head]) for each in shown]
            if len(page) < some:
                break
            after = page[-1].name
        return found

    # ------------------------------------------------------------------ the journal
    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        return await self.inner.settle([await self._encrypted_batch(batch) for batch in batches])

    async def _encrypted_batch(self, batch: RunBatch) -> RunBatch:
        run = batch.lease.run
        tenant = await self.tenant_of(run)
        return replace(batch, records=[await self._encrypted_record(r, tenant, run) for r in batch.records])

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        """None if a record names blobs: their addresses have to be looked up in the store first."""
        encrypted: list[RunBatch] = []
        for batch in batches:
            tenant = self._tenants.get(batch.lease.run)
            if tenant is None or any(r.side is not None and r.side.blobs for r in batch.records):
                return None
            records = [self._encrypted_now(record, tenant, batch.lease.run, []) for record in batch.records]
            encrypted.append(replace(batch, records=records))
        return self.inner.settle_now(encrypted)

    async def _encrypted_record(self, record: Record, tenant: str, run: str) -> Record:
        named = () if record.side is None else record.side.blobs
        blobs = [await self.blob_address(digest, tenant) for digest in named]
        return self._encrypted_now(record, tenant, run, blobs)

    def _encrypted_now(self, record: Record, tenant: str, run: str, blobs: list[bytes]) -> Record:
        encrypted = self.cipher.encrypt_record(record, tenant, run)
        if record.side is not None:
            encrypted.side = self.cipher.encrypt_side(record.side, tenant, run, blobs)
        return encrypted

    async def prune(
        self,
        run: RunId,
        *,
        horizon: int,
        replace: Record | None,
        later: Sequence[Record] = (),
        ended: bool = False,
        blobs: Sequence[bytes] | None = None,
    ) -> int:
        tenant = await self.tenant_of(run)
        encrypted = None if replace is None else await self._encrypted_record(replace, tenant, run)
        rest = [await self._encrypted_record(record, tenant, run) for record in later]
        # At all addresses: what was written before there were keys keeps its place.
        kept = None if blobs is None else [p for digest in blobs for p in self.cipher.places(digest, tenant)]
        return await self.inner.prune(
            run, horizon=horizon, replace=encrypted, later=rest, ended=ended, blobs=kept
        )

    # ------------------------------------------------------------------ the inbox and late reports
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
        event = event and self.cipher.encrypt(event, tenant, run=run)
        encrypted = self.cipher.encrypt_bytes(payload, tenant, "inbox", run, kind)
        return await self.inner.send(run, kind, encrypted, dedupe=dedupe, event=event)

    async def add_events(self, run: RunId, events: Sequence[EventRow]) -> None:
        tenant = await self.tenant_of(run)
        await self.inner.add_events(run, [self.cipher.encrypt(event, tenant, run=run) for event in events])

    async def pending(self, run: RunId) -> tuple[int, list[InboxRow]]:
        seen, rows = await self.inner.pending(run)
        return seen, [self.cipher.decrypt(row, run=run) for row in rows]

    async def report_late(self, run: RunId, seq: int, payload: bytes) -> None:
        # No two ciphertexts are alike, so the store below cannot see that this was reported before.
        if (seq, payload) in await self.late_reports(run):
            return
        tenant = await self.tenant_of(run)
        await self.inner.report_late(run, seq, self.cipher.encrypt_bytes(payload, tenant, "late", run, seq))

    async def late_reports(self, run: RunId) -> list[tuple[int, bytes]]:
        found = await self.inner.late_reports(run)
        return [(seq, self.cipher.decrypt_bytes(data, "late", run, seq)) for seq, data in found]

    # ------------------------------------------------------------------ holds
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
            return [(self.cipher.decrypt_or_mark(row), place) for row, place in found]
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
        """Prompts can be read only here: the holds that match the other filters are decrypted page by page.

        Raises InputError where these are too many."""
        wanted, plain = (where.text or "").casefold(), replace(where, text=None)
        for _ in range(READ_AT_MOST // _PAGE):
            page = await self.inner.list_holds(plain, order=order, after=after, limit=_PAGE)
            for row, place in page:
                readable = self.cipher.decrypt_or_mark(row)
                if has_text(readable, wanted):
                    yield readable, place
            if len(page) < _PAGE:
                return
            after = page[-1][1]
        raise InputError(
            f"the prompts are encrypted, and more than {READ_AT_MOST} holds would have to be decrypted to "
            f"find {where.text!r}.",
            hint="Narrow the search: by status, assignee, flow or time.",
        )

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        row = await self.inner.hold(change.hold)
        if row is None:
            return ChangeRefusal.unknown
        if change.fields.keys() & _DECIDES:
            # A decision is accepted only where the question could be read.
            self.cipher.decrypt(row)
        blobs = tuple([await self.blob_address(digest, row.tenant) for digest in change.blobs])
        changed = await self.inner.change_hold(self.cipher.encrypt_change(change, row, blobs))
        return self.cipher.decrypt_or_mark(changed) if isinstance(changed, HoldRow) else changed

    # ------------------------------------------------------------------ the outbox
    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        readable: list[OutboxRow] = []
        for row in await self.inner.claim_outbox(limit=limit, lease=lease, topics=topics):
            try:
                readable.append(self.cipher.decrypt(row))
            except KeyMissingError as error:
                await self._wait_for_key(row, str(error))
        return readable

    async def _wait_for_key(self, row: OutboxRow, why: str) -> None:
        """Its message is sent once the key is available, and other messages do not wait for it."""
        await self.inner.finish_outbox(
            row.id,
            attempt=row.attempts,
            state=OutboxState.waiting,
            error=why,
            due_at=self.inner.now() + _LATER,
        )

    # ------------------------------------------------------------------ queues
    async def publish_message(
        self, new: NewMessage, *, outbox: Sequence[OutboxMessage] = ()
    ) -> tuple[MessageRow, bool] | None:
        encrypted = [self.cipher.encrypt(each, new.tenant) for each in outbox]
        found = await self.inner.publish_message(self.cipher.encrypt(new, new.tenant), outbox=encrypted)
        return None if found is None else (self.cipher.decrypt(found[0]), found[1])

    async def change_message(
        self, change: MessageChange, *, outbox: Sequence[OutboxMessage] = ()
    ) -> MessageRow | MessageRefusal:
        encrypted = [self.cipher.encrypt(each, change.tenant) for each in outbox]
        changed = await self.inner.change_message(
            self.cipher.encrypt(change, change.tenant), outbox=encrypted
        )
        return self.cipher.decrypt(changed) if isinstance(changed, MessageRow) else changed

    async def sweep_messages(self, *, limit: int = 500, notice: EndNotice | None = None) -> MessageSweep:
        def encrypted(row: MessageRow) -> list[OutboxMessage]:
            return [self.cipher.encrypt(each, row.tenant) for each in (notice(row) if notice else ())]

        return await self.inner.sweep_messages(limit=limit, notice=encrypted)

    # ------------------------------------------------------------------ memories and projections
    async def find_memories(
        self,
        *,
        tenant: str,
        scope: str,
        query: str,
        limit: int,
        types: Sequence[str] = (),
        min_strength: float | None = None,
    ) -> list[Memory]:
        """The words can be read only here: the store gives all memories of the scope, in its order."""
        found = await self.inner.find_memories(
            tenant=tenant, scope=scope, query="", limit=_ALL, types=types, min_strength=min_strength
        )
        readable = (self.cipher.decrypt(memory) for memory in found)
        wanted = words(query)
        matching = [m for m in readable if all(word in m.content.casefold() for word in wanted)]
        return matching[:limit]

    async def put_projections(self, rows: Sequence[Projection], *, upto: int) -> None:
        """Only what is in plain columns anyway: SQL readers have no key."""
        if self.cipher.ring is not None:
            rows = [replace(row, node_states=None, original_input=None, output=None) for row in rows]
        await self.inner.put_projections(rows, upto=upto)


def _wrapped(name: str, method: WrappedMethod) -> Any:
    def prepare(
        self: EncryptedStore, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, str], tuple[Any, ...]]:
        known = {method.bound: args[0] if args else kwargs[method.bound]} if method.bound else {}
        if (at := method.argument) is not None:
            # Taken by position: a row that is given by name raises IndexError here, and is not stored.
            args = (*args[:at], self.encrypted(args[at], known), *args[at + 1 :])
        return known, args

    async def call(self: EncryptedStore, *args: Any, **kwargs: Any) -> Any:
        known, args = prepare(self, args, kwargs)
        return self.decrypted(await getattr(self.inner, name)(*args, **kwargs), known)

    def call_now(self: EncryptedStore, *args: Any, **kwargs: Any) -> Any:
        known, args = prepare(self, args, kwargs)
        return self.decrypted(getattr(self.inner, name)(*args, **kwargs), known)

    made = call_now if method.inline else call
    made.__name__ = name
    return made


for _name, _method in METHODS.items():
    setattr(EncryptedStore, _name, _wrapped(_name, _method))
for _name in PLAIN:
    # The inner store's own bound method: no call in between.
    setattr(EncryptedStore, _name, property(attrgetter(f"inner.{_name}")))


def with_encryption(inner: Store, cipher: FieldCipher) -> Store:
    """A store that is encrypted already, also within another one, stays as it is."""
    if encrypted_store_within(inner) is not None:
        return inner
    return cast("Store", EncryptedStore(inner, cipher))
