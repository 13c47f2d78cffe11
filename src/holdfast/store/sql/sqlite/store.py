"""The SQLite store: which connection does what. The modules it calls do the work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import apsw
import msgspec

from holdfast.errors import StoreError, StoreReplacedError
from holdfast.store.blob.local import LocalBlobs, folder_beside
from holdfast.store.change_signal import ChangeSignal
from holdfast.store.limit_admission import releases_lease, wait_until_open
from holdfast.store.queue_rules import concern_queues
from holdfast.store.rows import Capability, Claim, ClaimRequest, NewRun, RunRow, StoreFacts
from holdfast.store.sql import blobs, journal, raw_rows, reclaim, runs
from holdfast.store.sql.connection import Conn, Query, Work
from holdfast.store.sql.lost_history import stop_lost_run
from holdfast.store.sql.served_versions import Crowd
from holdfast.store.sql.sqlite import claim, claim_outbox, feed, hold_lists
from holdfast.store.sql.sqlite.connect import (
    UNSYNCED_WARNING,
    Cursor,
    SqliteSettings,
    connect,
    row,
    run_now,
)
from holdfast.store.sql.sqlite.delete import delete
from holdfast.store.sql.sqlite.dialect import SqliteConn
from holdfast.store.sql.sqlite.errors import closed, translated
from holdfast.store.sql.sqlite.examine import examine
from holdfast.store.sql.sqlite.identity import (
    FileIdentity,
    StoreMark,
    compare_with_mark,
    position,
    read_mark,
    write_mark,
)
from holdfast.store.sql.sqlite.migrate import prepare
from holdfast.store.sql.sqlite.readers import SqliteReaders
from holdfast.store.sql.sqlite.settle import park, settle
from holdfast.store.sql.sqlite.writer import SqliteWriter, WriterBusy, transact
from holdfast.store.sql.store import SqlStore
from holdfast.telemetry import log
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.clock import Clock, SystemClock
from holdfast.types.durability import Durability
from holdfast.types.event import EventRow
from holdfast.types.fleet import WorkerRow
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.outbox import OutboxRow
from holdfast.types.own_threads import in_thread
from holdfast.types.record import Park, Record, RunBatch, SettleAnswer
from holdfast.types.status import RunStatus

T = TypeVar("T")

_CONDEMNED = "SELECT digest, place FROM @blobs WHERE digest = ANY(?::bytea[]) AND condemned"
IN_ROW = 1 << 20  # blobs up to this size live in the database (D-37)


class SqliteStore(SqlStore):
    """Writes use one connection, heartbeats another, reads a few others."""

    capabilities = Capability.durable | Capability.shared | Capability.inline

    def __init__(self, settings: SqliteSettings, clock: Clock | None = None) -> None:
        """Opens the file, creating or migrating it. Blocks: `open_store` calls it in a thread.

        Raises NotAStoreError, SchemaTooNewError, StoreBusyError, StoreUnavailableError.
        """
        self._settings = settings
        time_ = clock or SystemClock()
        self._now = time_.now
        self._queue_changes = ChangeSignal(time_)
        # Before the file is read: another process may move both on meanwhile.
        known = read_mark(settings.path) if Path(settings.path).exists() else None
        prepare(settings)
        try:
            self._identity = FileIdentity(settings.path)
            self._writer = SqliteWriter(settings, self._now, self._woken, self._identity)
            self._beats = self._identity.adopt(connect(settings))
        except apsw.Error as error:
            raise translated(error, settings.path) from error
        self._beating = threading.Lock()
        self._closed = False
        self._readers = SqliteReaders(settings, self._identity)
        compare_with_mark(settings.path, known, self._readers.read(position), self._now())
        self._changes = SqliteChangeSignal(partial(self._writer.read_if_idle, _data_version))
        self._objects = LocalBlobs(folder_beside(settings.path))
        # Whether a claim here found a limit reached: then each place that becomes free wakes the workers.
        self._lined = False
        self._opens_at: int | None = None
        self._crowd = Crowd()
        _open_stores.add(self)

    def now(self) -> int:
        return self._now()

    async def wait_change(self, timeout: float) -> bool:
        return await self._changes.wait(wait_until_open(timeout, self._opens_at, self._now()))

    def _save_mark(self) -> None:
        """Only for the file that is open: another one has its own history. Raises StoreReplacedError."""
        self._identity.check()
        known, found = read_mark(self._settings.path), self._readers.read(position)
        # An older backup that was copied into the file: its place and its log are still the same.
        self._identity.check_position(found, known)
        write_mark(self._settings.path, StoreMark(position=found, lost=known.lost if known else ""))

    async def put_worker(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        holder = await super().put_worker(worker, ttl)
        try:
            self._save_mark()
        except StoreReplacedError:
            raise
        except StoreError as error:
            log.debug("the mark of %s was not written: %s", self._settings.path, error)
        return holder

    async def workers(self) -> list[WorkerRow]:
        self._identity.check()  # health probes ask for them
        return await super().workers()

    async def close(self) -> None:
        if not self._closed:
            with contextlib.suppress(StoreError):
                self._save_mark()
        self._closed = True
        self._readers.close()
        await in_thread(self._close_writers)
        self._changes.notify()
        self._queue_changes.notify()

    def _close_writers(self) -> None:
        self._writer.close()
        with self._beating:
            self._beats.close()
        self._identity.close()
        _open_stores.discard(self)

    def _abandon(self) -> None:
        """In a forked child. SQLite's locks stay with the parent, so the child must open its own store."""
        self._closed = True
        self._beating = threading.Lock()
        self._readers.abandon()
        self._writer.abandon()

    def _woken(self) -> None:
        self._changes.notify()

    async def _read(self, query: Query[T], *, together: bool = False, slow: bool = False) -> T:
        read = self._readers.read_together if together else self._readers.read

        def run(cur: Cursor) -> T:
            return run_now(query(SqliteConn(cur)))

        return await in_thread(read, run) if slow else read(run)

    async def _peek(self, query: Query[T]) -> T:
        """The writing connection still has rows that were just written in its cache, while a reader starts
        with an empty one."""

        def run(cur: Cursor) -> T:
            return run_now(query(SqliteConn(cur)))

        found = self._writer.read_if_idle(run)
        return self._readers.read(run) if isinstance(found, WriterBusy) else found

    async def _write(
        self,
        work: Work[T],
        *,
        wakes: bool = False,
        single: bool = False,
        server_time: bool = False,
        flushed: bool = True,
    ) -> T:
        return await self._writer.write(
            lambda cur, now: run_now(work(SqliteConn(cur), now)), wakes=wakes, flushed=flushed
        )

    def _server_time(self) -> int:
        return self._now()

    # Runs.

    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        # A run that is claimed as it is created concerns no other worker.
        made = await self._write(partial(_create, new=new), wakes=new.claimed_by is None)
        self._wake_queues(new.first)
        return made

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        self._changes.mark_checked()
        look = partial(claim.any_ready, now=self._now(), want=want, crowd=self._crowd)
        if want.run is None and not self._readers.read(look):
            return []
        # A lease only concerns live processes, and a power cut leaves none: it need not be flushed to disk.
        taken = await self._writer.write(partial(claim.claim, want=want, crowd=self._crowd), flushed=False)
        self._lined = self._lined or taken.kept_out
        self._opens_at = taken.opens_at
        return taken.claims

    async def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        return await in_thread(self.extend_now, leases, ttl)

    def extend_now(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """`extend` for a heartbeat thread: on a separate connection, waiting for locks in this thread."""
        if self._closed:
            raise closed(self._settings.path)
        with self._beating:
            try:
                return transact(
                    self._beats.cursor(),
                    partial(claim.extend, leases=leases, ttl=ttl),
                    self._now,
                    self._identity,
                )
            except apsw.Error as error:
                self._identity.check_error(error)
                raise translated(error, self._settings.path) from error

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        wakes = self._lined and any(map(releases_lease, batches))
        answers = await self._writer.submit(partial(settle, batches=batches), wakes=wakes)
        for batch in batches:
            if concern_queues(batch.records):
                self._queue_changes.notify()
        return answers

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        wakes = self._lined and any(map(releases_lease, batches))
        answers = self._writer.try_now(partial(settle, batches=batches), wakes=wakes)
        if isinstance(answers, WriterBusy):
            return None
        for batch in batches:
            if concern_queues(batch.records):
                self._queue_changes.notify()
        return answers

    async def park(self, lease: Lease, *, status: RunStatus, inbox_seen: int, ready_at: int | None) -> bool:
        work = partial(park, lease=lease, how=Park(status, inbox_seen, ready_at))
        return await self._writer.write(work, wakes=ready_at is not None or self._lined)

    async def set_idle(self, lease: Lease, *, status: RunStatus) -> bool:
        return await self._writer.write(partial(claim.set_idle, lease=lease, status=status))

    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        if not await self._read(partial(reclaim.any_lapsed, now=self._now())):
            return []
        given = {"limit": limit, "max_recoveries": max_recoveries, "backoff": backoff}
        return await self._write(partial(reclaim.reclaim, **given), wakes=True)

    async def lost_history(self, known: AcknowledgedState) -> RunRow | None:
        return await self._write(partial(stop_lost_run, known=known), wakes=self._lined)

    async def delete_run(self, run: RunId, *, ended: bool = False) -> bool:
        return await self._writer.write(partial(delete, run=run, ended=ended))

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        return await self._write(partial(reclaim.claim_dead, want=want, event=event, claim=_claim_named))

    # The journal and the feed.

    def read_now(self, run: RunId, *, first: int, last: int) -> list[Record]:
        query = partial(journal.read, run=run, first=first, last=last, payloads=True)
        return self._readers.read(lambda cur: run_now(query(SqliteConn(cur))))

    async def feed(self, *, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
        return self._readers.read_together(partial(feed.feed, after=after, limit=limit))

    async def free_space(self) -> None:
        """Free pages are used again without a vacuum."""

    async def trim_feed(self, *, before: int, limit: int = 5000) -> int:
        return await self._writer.write(partial(feed.trim_feed, before=before, limit=limit))

    # Holds and the outbox.

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
        return self._readers.read(partial(hold_lists.count, where=where, limit=limit))

    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        if not self._readers.read(partial(claim_outbox.any_due, now=self._now(), topics=topics)):
            return []
        work = partial(claim_outbox.claim, limit=limit, lease=lease, topics=topics)
        # As with a lease: a power cut leaves no process that could have claimed something.
        return await self._writer.write(work, flushed=False)

    # The file.

    async def examine(self, *, deep: bool) -> StoreFacts:
        exists = self._objects.has_now if deep else None
        facts = self._readers.read(partial(examine, now=self._now(), exists=exists))
        mark = read_mark(self._settings.path)
        return facts if mark is None else msgspec.structs.replace(facts, went_back=mark.lost)

    async def durability(self) -> Durability:
        return Durability(weak=[UNSYNCED_WARNING] if self._settings.sync == "normal" else [])

    # Blobs: large ones are files beside the database.

    async def put_blob(self, digest: bytes, size: int, data: bytes | None) -> None:
        if data is None or len(data) <= IN_ROW:
            place = "elsewhere" if data is None else "row"
            await self._write(partial(blobs.put, digest=digest, size=size, place=place, data=data))
            return
        stored = False
        # The collector may delete the file between the two steps; then it is written again.
        while not stored:
            await self._objects.put(digest, data)
            stored = await self._write(partial(self._name_file, digest=digest, size=size))

    async def _name_file(self, conn: Conn, now: int, digest: bytes, size: int) -> bool:
        if not self._objects.has_now(digest):
            return False
        await blobs.put(conn, now, digest, size, "file", None)
        return True

    async def blob(self, digest: bytes) -> tuple[int, bytes | None] | None:
        found = await self._read(partial(blobs.get, digest=digest))
        if found is None:
            return None
        size, place, data = found
        return size, (await self._objects.get(digest) if place == "file" else data)

    async def drop_blobs(self, digests: Sequence[bytes]) -> None:
        await self._write(partial(self._drop, digests=digests))

    async def _drop(self, conn: Conn, now: int, digests: Sequence[bytes]) -> None:
        """Files are deleted first, inside the transaction: so the row cannot be revived meanwhile, and a
        crash in between leaves a condemned row without a file, which the next sweep drops."""
        free = await conn.rows(_CONDEMNED, list(digests))
        for digest, place in free:
            if place == "file":
                self._objects.delete_now(digest)
        await blobs.drop(conn, now, [digest for digest, _ in free])

    async def replace_blob(self, digest: bytes, data: bytes) -> None:
        found = await self._read(partial(blobs.get, digest=digest))
        if found is not None and found[1] == "file":
            await self._objects.replace(digest, data)
        elif found is not None:
            await self._write(partial(raw_rows.replace_blob, digest=digest, data=data))


async def _create(conn: Conn, now: int, new: NewRun) -> tuple[RunRow, bool]:
    made = None if new.limit else await runs.create(conn, now, new)
    return await runs.create_limited(conn, now, new, now) if made is None else made


async def _claim_named(conn: Conn, now: int | None, want: ClaimRequest) -> list[Claim]:
    assert isinstance(conn, SqliteConn)
    assert now is not None
    return claim.claim(conn.cur, now, want, Crowd()).claims


def _data_version(cur: Cursor) -> int:
    found = row(cur, "PRAGMA data_version")
    return 0 if found is None else found[0]


_open_stores: WeakSet[SqliteStore] = WeakSet()
_inherited: list[SqliteStore] = []  # never finalised: closing a connection would change the parent's files


def _after_fork() -> None:
    for store in list(_open_stores):
        store._abandon()  # pyright: ignore[reportPrivateUsage]
        _inherited.append(store)
    _open_stores.clear()


os.register_at_fork(after_in_child=_after_fork)


POLL_EVERY = 0.05  # seconds


class SqliteChangeSignal:
    """`version` is SQLite's data_version on the writing connection: it changes when others commit."""

    def __init__(self, version: Callable[[], int | WriterBusy]) -> None:
        self._version = version
        self._last = version()
        self._generation = 0
        self._lock = threading.Lock()
        self._waiters: set[asyncio.Future[None]] = set()
        self._seen: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()

    def notify(self) -> None:
        """Something changed that could concern a worker. May be called from any thread."""
        with self._lock:
            self._generation += 1
            waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    def mark_checked(self) -> None:
        """This task is about to look for work: only later changes are new to it."""
        task = asyncio.current_task()
        if task is not None:
            self._seen[task] = self._generation

    async def wait(self, timeout: float) -> bool:
        """True as soon as something has changed since this task last looked."""
        task = asyncio.current_task()
        seen = self._generation if task is None else self._seen.get(task, self._generation)
        deadline = time.monotonic() + timeout
        while True:
            self._poll()
            if self._generation != seen:
                self.mark_checked()
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            await self._pause(min(left, POLL_EVERY))

    async def _pause(self, seconds: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiters.add(waiter)
        try:
            await asyncio.wait((waiter,), timeout=seconds)
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    def _poll(self) -> None:
        version = self._version()
        if not isinstance(version, WriterBusy) and version != self._last:
            self._last = version
            self.notify()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
