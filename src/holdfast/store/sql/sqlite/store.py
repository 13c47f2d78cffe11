"""The SQLite store: which connection does what. How each thing is done stands in the modules it calls."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

import apsw

from holdfast.store.blob.local import LocalBlobs
from holdfast.store.limits import releases_lease, wait_until_open
from holdfast.store.protocols import (
    Capability,
    Claim,
    ClaimRequest,
    FlowRow,
    NewRun,
    RunFilter,
    RunHistory,
    RunRow,
    StoreFacts,
)
from holdfast.store.sql.sqlite import (
    blobs,
    claim,
    inbox,
    journal,
    kept,
    losing,
    memories,
    moving,
    reclaim,
    runs,
)
from holdfast.store.sql.sqlite.connect import UNSYNCED_WARNING, Cursor, SqliteSettings, connect, row
from holdfast.store.sql.sqlite.errors import closed, translated
from holdfast.store.sql.sqlite.examine import examine
from holdfast.store.sql.sqlite.fleet import SqliteFleet
from holdfast.store.sql.sqlite.gating import SqliteLimits
from holdfast.store.sql.sqlite.holding import SqliteHolds
from holdfast.store.sql.sqlite.migrate import prepare
from holdfast.store.sql.sqlite.projections import SqliteProjections
from holdfast.store.sql.sqlite.readers import SqliteReaders
from holdfast.store.sql.sqlite.scheduling import SqliteSchedules
from holdfast.store.sql.sqlite.settle import park, settle
from holdfast.store.sql.sqlite.wake import SqliteChangeSignal
from holdfast.store.sql.sqlite.writer import SqliteWriter, WriterBusy, transact
from holdfast.telemetry import crashpoint
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ciphertext import StoredRow
from holdfast.types.clock import Clock, SystemClock
from holdfast.types.durability import Durability
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.memory import Memory
from holdfast.types.record import InboxRow, Lease, Park, Record, RunBatch, SettleAnswer
from holdfast.types.status import RunStatus

T = TypeVar("T")

IN_ROW = 1 << 20  # blobs up to this size live in the database (D-37)


class SqliteStore(SqliteHolds, SqliteLimits, SqliteSchedules, SqliteFleet, SqliteProjections):
    """Writes go through one connection, heartbeats through another, reads through a few of their own."""

    capabilities = Capability.durable | Capability.shared | Capability.inline

    def __init__(self, settings: SqliteSettings, clock: Clock | None = None) -> None:
        """Opens the file, creating or migrating it. Blocks: `open_store` calls it in a thread.

        Raises NotAStoreError, SchemaTooNewError, StoreBusyError, StoreUnavailableError.
        """
        self._settings = settings
        self._now = (clock or SystemClock()).now
        prepare(settings)
        try:
            self._writer = SqliteWriter(settings, self._now, self._woken)
            self._beats = connect(settings)
        except apsw.Error as error:
            raise translated(error, settings.path) from error
        self._beating = threading.Lock()
        self._closed = False
        self._readers = SqliteReaders(settings)
        self._changes = SqliteChangeSignal(partial(self._writer.read_if_idle, _data_version))
        self._objects = LocalBlobs(settings.path + "-blobs")
        self._write = self._writer.write
        # Whether a claim here found a gate shut: who waits at it hears of each place that comes free.
        self._lined = False
        self._opens_at: int | None = None
        _open_stores.add(self)

    def now(self) -> int:
        return self._now()

    async def wait_change(self, timeout: float) -> bool:
        return await self._changes.wait(wait_until_open(timeout, self._opens_at, self._now()))

    async def close(self) -> None:
        self._closed = True
        self._readers.close()
        await asyncio.to_thread(self._close_writers)
        self._changes.tell()

    def _close_writers(self) -> None:
        self._writer.close()
        with self._beating:
            self._beats.close()
        _open_stores.discard(self)

    def _abandon(self) -> None:
        """In a forked child. SQLite's locks stay with the parent: the child must open a store of its own."""
        self._closed = True
        self._beating = threading.Lock()
        self._readers.abandon()
        self._writer.abandon()

    def _woken(self) -> None:
        self._changes.tell()

    # Runs.

    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        # A run that is claimed as it is made is nothing for anybody else.
        return await self._write(partial(runs.create, new=new), wakes=new.claimed_by is None)

    async def get_run(self, run: RunId) -> RunRow | None:
        return self._peek(partial(runs.get, run=run))

    async def find_runs(self, prefix: str) -> list[RunRow]:
        return self._read(partial(runs.find, prefix=prefix))

    async def list_runs(self, where: RunFilter, *, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
        return self._read(partial(runs.select, where=where, after=after, limit=limit))

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        self._changes.mark_checked()
        if want.run is None and not self._read(partial(claim.any_ready, now=self._now(), want=want)):
            return []
        # It keeps live processes apart, and a power cut leaves none: what is done under it is flushed later.
        taken = await self._writer.write(partial(claim.claim, want=want), flushed=False)
        self._lined = self._lined or taken.kept_out
        self._opens_at = taken.opens_at
        return taken.claims

    async def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        return await asyncio.to_thread(self.extend_now, leases, ttl)

    def extend_now(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """`extend` for a heartbeat thread: on a connection of its own, waiting for locks in this thread."""
        if self._closed:
            raise closed(self._settings.path)
        with self._beating:
            try:
                return transact(
                    self._beats.cursor(), partial(claim.extend, leases=leases, ttl=ttl), self._now
                )
            except apsw.Error as error:
                raise translated(error, self._settings.path) from error

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        wakes = self._lined and any(map(releases_lease, batches))
        return await self._writer.submit(partial(settle, batches=batches), wakes=wakes)

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        wakes = self._lined and any(map(releases_lease, batches))
        answers = self._writer.try_now(partial(settle, batches=batches), wakes=wakes)
        return None if isinstance(answers, WriterBusy) else answers

    async def park(self, lease: Lease, *, status: RunStatus, inbox_seen: int, ready_at: int | None) -> bool:
        work = partial(park, lease=lease, how=Park(status, inbox_seen, ready_at))
        return await self._write(work, wakes=ready_at is not None or self._lined)

    async def rest(self, lease: Lease, *, status: RunStatus) -> bool:
        return await self._write(partial(claim.set_idle, lease=lease, status=status))

    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        if not self._read(partial(reclaim.any_lapsed, now=self._now())):
            return []
        given = {"limit": limit, "max_recoveries": max_recoveries, "backoff": backoff}
        return await self._write(partial(reclaim.reclaim, **given), wakes=True)

    async def lost_history(self, known: AcknowledgedState) -> RunRow | None:
        return await self._write(partial(losing.stop_lost_run, known=known), wakes=self._lined)

    async def delete_run(self, run: RunId, *, ended: bool = False) -> bool:
        return await self._write(partial(runs.delete, run=run, ended=ended))

    # The journal.

    async def read(
        self, run: RunId, *, first: int = 0, last: int | None = None, payloads: bool = True
    ) -> list[Record]:
        return self._read(partial(journal.read, run=run, first=first, last=last, payloads=payloads))

    def read_now(self, run: RunId, *, first: int, last: int) -> list[Record]:
        return self._read(partial(journal.read, run=run, first=first, last=last, payloads=True))

    async def listed(
        self, run: RunId, *, node: str | None = None, before: int | None = None, limit: int = 0
    ) -> list[Record]:
        return self._read(partial(journal.listed, run=run, node=node, before=before, limit=limit))

    async def last_snapshot(self, run: RunId, at_most: int) -> int | None:
        return self._read(partial(journal.last_snapshot, run=run, at_most=at_most))

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Record | EventRow]:
        return self._readers.read_together(partial(journal.events, run=run, after=after, limit=limit))

    async def inbox_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        return self._readers.read(partial(inbox.heads, runs=runs))

    async def event_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        return self._readers.read_together(partial(journal.event_heads, runs=runs))

    async def feed(self, *, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
        return self._readers.read_together(partial(journal.feed, after=after, limit=limit))

    async def free_room(self) -> None:
        """Free pages are used again by themselves."""

    async def trim_feed(self, *, before: int, limit: int = 5000) -> int:
        return await self._write(partial(journal.trim_feed, before=before, limit=limit))

    async def prune(
        self,
        run: RunId,
        *,
        horizon: int,
        replace: Record | None,
        ended: bool = False,
        blobs: Sequence[bytes] | None = None,
    ) -> int:
        work = partial(journal.prune, run=run, horizon=horizon, replace=replace, ended=ended, blobs=blobs)
        return await self._write(work)

    # The inbox.

    async def send(
        self,
        run: RunId,
        kind: str,
        payload: bytes,
        *,
        dedupe: str | None = None,
        event: EventRow | None = None,
    ) -> bool:
        work = partial(inbox.send, run=run, kind=kind, payload=payload, dedupe=dedupe, event=event)
        return await self._write(work, wakes=True)

    async def pending(self, run: RunId) -> tuple[int, list[InboxRow]]:
        return self._peek(partial(inbox.pending, run=run))

    async def fire_timers(self, *, limit: int, run: RunId | None = None) -> int:
        if not self._read(partial(inbox.due_timers, now=self._now(), limit=1, run=run)):
            return 0
        fired = await self._write(partial(inbox.fire_timers, limit=limit, run=run), wakes=True)
        if fired:
            crashpoint("after_timer_fired")
        return fired

    async def next_timer(self) -> int | None:
        return self._read(inbox.next_timer)

    async def report_late(self, run: RunId, seq: int, payload: bytes) -> None:
        await self._write(partial(inbox.report_late, run=run, seq=seq, payload=payload))

    async def late_reports(self, run: RunId) -> list[tuple[int, bytes]]:
        return self._read(partial(inbox.late_reports, run=run))

    # Whole runs.

    async def history(self, run: RunId) -> RunHistory | None:
        return self._readers.read_together(partial(moving.history, run=run))

    async def adopt(self, history: RunHistory) -> tuple[RunRow, bool]:
        return await self._write(partial(moving.adopt, history=history))

    # Flows and blobs.

    async def put_flow(self, flow: FlowRow) -> None:
        await self._write(partial(blobs.put_flow, flow=flow))

    async def flow(self, name: str, version: str) -> FlowRow | None:
        return self._read(partial(blobs.flow, name=name, version=version))

    async def flows(self) -> list[FlowRow]:
        return self._read(blobs.flows)

    async def examine(self, *, deep: bool) -> StoreFacts:
        exists = self._objects.has if deep else None
        return self._read(partial(examine, now=self._now(), exists=exists))

    async def durability(self) -> Durability:
        return Durability(weak=[UNSYNCED_WARNING] if self._settings.sync == "normal" else [])

    async def put_code(self, digest: str, marks: bytes) -> None:
        await self._write(partial(blobs.put_code, digest=digest, marks=marks))

    async def code(self, digest: str) -> bytes | None:
        return self._read(partial(blobs.code, digest=digest))

    async def put_memory(self, memory: Memory) -> None:
        await self._write(partial(memories.put_one, memory=memory))

    async def find_memories(self, *, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        return self._read(partial(memories.find, tenant=tenant, scope=scope, query=query, limit=limit))

    async def put_blob(self, digest: bytes, size: int, data: bytes | None) -> None:
        if data is None or len(data) <= IN_ROW:
            place = "elsewhere" if data is None else "row"
            await self._write(partial(blobs.put, digest=digest, size=size, place=place, data=data))
            return
        stored = False
        # The collector may take the file between the two steps; then it is written again.
        while not stored:
            await self._objects.put(digest, data)
            stored = await self._write(partial(self._name_file, digest=digest, size=size))

    def _name_file(self, cur: Cursor, now: int, digest: bytes, size: int) -> bool:
        if not self._objects.has(digest):
            return False
        blobs.put(cur, now, digest, size, "file", None)
        return True

    async def blob(self, digest: bytes) -> tuple[int, bytes | None] | None:
        found = self._read(partial(blobs.get, digest=digest))
        if found is None:
            return None
        size, place, data = found
        return size, (await self._objects.get(digest) if place == "file" else data)

    async def condemn_blobs(self, *, older_than: int, limit: int) -> list[bytes]:
        return await self._write(partial(blobs.condemn, older_than=older_than, limit=limit))

    async def drop_blobs(self, digests: Sequence[bytes]) -> None:
        await self._write(partial(self._drop, digests=digests))

    def _drop(self, cur: Cursor, _now: int, digests: Sequence[bytes]) -> None:
        """Files go first, inside the transaction: nobody can revive the row meanwhile, and a crash in between
        leaves a condemned row without a file, which the next sweep drops."""
        free = blobs.condemned(cur, digests)
        for digest, place in free:
            if place == "file":
                self._objects.delete_now(digest)
        blobs.drop(cur, [digest for digest, _ in free])

    # Encrypting anew.

    async def kept(self, table: str, *, after: int, limit: int) -> list[StoredRow]:
        return self._read(partial(kept.stored_rows, table=table, after=after, limit=limit))

    async def rewrite(self, table: str, changes: Sequence[tuple[StoredRow, dict[str, Any]]]) -> int:
        return await self._write(partial(kept.rewrite, table=table, changes=changes))

    async def blobs_of(self, run: RunId) -> list[bytes]:
        return self._read(partial(kept.blobs_of, run=run))

    async def replace_blob_reference(self, run: RunId, old: bytes, new: bytes) -> None:
        await self._write(partial(kept.replace_blob_reference, run=run, old=old, new=new))

    async def replace_blob(self, digest: bytes, data: bytes) -> None:
        found = self._read(partial(blobs.get, digest=digest))
        if found is not None and found[1] == "file":
            await self._objects.replace(digest, data)
        elif found is not None:
            await self._write(partial(kept.replace_blob, digest=digest, data=data))


def _data_version(cur: Cursor) -> int:
    found = row(cur, "PRAGMA data_version")
    return 0 if found is None else found[0]


_open_stores: WeakSet[SqliteStore] = WeakSet()
_inherited: list[SqliteStore] = []  # never finalised: closing a connection would touch the parent's files


def _after_fork() -> None:
    for store in list(_open_stores):
        store._abandon()  # pyright: ignore[reportPrivateUsage]
        _inherited.append(store)
    _open_stores.clear()


os.register_at_fork(after_in_child=_after_fork)
