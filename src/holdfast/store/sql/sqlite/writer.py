"""The only way to write: at once in the caller's thread if there is no other write, else through one thread.

The thread puts everything that was queued meanwhile into one transaction, so that many writers share one
flush.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sized
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

import apsw
import msgspec

from holdfast.errors import StoreReplacedError
from holdfast.store.sql.sqlite.connect import Connection, Cursor, SqliteSettings, connect
from holdfast.store.sql.sqlite.errors import closed, translated
from holdfast.store.sql.sqlite.identity import FileIdentity
from holdfast.telemetry import log

T = TypeVar("T")

Work = Callable[[Cursor, int], T]
"""Writes inside an open transaction; the second argument is the store's time. May be called again after a
rollback, so it keeps no state between calls."""


LEAST_RESERVED = 64 << 10
MOST_RESERVED = 1 << 20


class LogSpace:
    """Space in the write-ahead log before it is needed.

    To flush a file that has grown, the system also writes its size and its new blocks: a commit takes about
    half as long again as one that writes where the log has been before. So the log grows by large pieces of
    zeros. SQLite ignores them, as it ignores what an earlier round left there: a frame counts only with the
    salt of the log's header."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.reserved = 0  # a longer log was made so by SQLite: the reserved part is used up

    def reserve(self, known: int) -> bool:
        """Only with SQLite's write lock: a frame of another process would be overwritten. Without space on
        the disk nothing is reserved, and SQLite reports it where it matters. False, and nothing is reserved,
        in a log that is shorter than `known`."""
        with contextlib.suppress(OSError):
            file = os.open(self._path, os.O_WRONLY)
            try:
                end = os.fstat(file).st_size
                if end < known:
                    return False
                self.reserved = end
                self.reserved += os.pwrite(file, bytes(min(max(end, LEAST_RESERVED), MOST_RESERVED)), end)
            finally:
                os.close(file)
        return True


class WriterBusy:
    """What `try_now` and `read_if_idle` return while there is another write."""


BUSY: Final = WriterBusy()


def transact(cur: Cursor, work: Work[T], now: Callable[[], int], identity: FileIdentity | None = None) -> T:
    """BEGIN IMMEDIATE, the work, COMMIT; on any failure nothing of it is kept (D-8). `identity`: before the
    result is given out, that the file is still in its place."""
    # The write lock at once: a transaction that has read may be refused when it writes first, whatever the
    # busy timeout, because its snapshot is old by then.
    cur.execute("BEGIN IMMEDIATE")
    try:
        result = work(cur, now())
        if identity is not None:
            identity.check_index()
        cur.execute("COMMIT")
    except BaseException:
        _roll_back(cur)
        raise
    if identity is not None:
        identity.check_commit(cur)
    return result


def _roll_back(cur: Cursor) -> None:
    """After an I/O error SQLite may have rolled back by itself."""
    if cur.connection.in_transaction:
        try:
            cur.execute("ROLLBACK")
        except apsw.Error:
            log.warning("rolling back failed", exc_info=True)


class WriteJob(msgspec.Struct, eq=False):
    work: Work[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    wakes: bool
    result: Any = None
    error: BaseException | None = None


class SqliteWriter:
    """Owns the writing connection. `woken` is called after a commit that could concern a worker."""

    def __init__(
        self,
        settings: SqliteSettings,
        now: Callable[[], int],
        woken: Callable[[], None],
        identity: FileIdentity,
    ) -> None:
        self._settings = settings
        self._now = now
        self._woken = woken
        self._identity = identity
        self._space = LogSpace(identity.wal_path)
        self._conn = identity.adopt(connect(settings))
        self._conn.set_busy_timeout(0)
        self._cur = self._conn.cursor()
        self._in_use = threading.Lock()  # its owner has the connection
        self._gate = threading.Lock()  # guards the start of the thread and the end of the queue
        self._queue: SimpleQueue[WriteJob | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._arriving: deque[None] = deque()  # may be used from several threads
        self._closed = False

    async def write(self, work: Work[T], *, wakes: bool = False, flushed: bool = True) -> T:
        """One transaction: inline if there is no other write, else grouped by the thread. Not `flushed`: a
        power cut may lose it, but never without everything that was written after it."""
        if _others_are_ready():
            # One turn of the loop, so that calls made together (a gather of many creates) are grouped.
            self._arriving.append(None)
            try:
                await asyncio.sleep(0)
            finally:
                self._arriving.pop()
        if not self._arriving:
            result = self.try_now(work, wakes=wakes, flushed=flushed)
            if not isinstance(result, WriterBusy):
                return result
        return await self.submit(work, wakes=wakes)

    def try_now(self, work: Work[T], *, wakes: bool = False, flushed: bool = True) -> T | WriterBusy:
        """The same at once in this thread. Returns BUSY, with nothing written, if it would have to wait."""
        if self._closed:
            raise closed(self._settings.path)
        if not self._queue.empty() or not self._in_use.acquire(False):
            return BUSY
        try:
            result = self._transact(work) if flushed else self._without_flush(work)
        except apsw.BusyError:
            return BUSY
        except apsw.Error as error:
            raise self._translated(error) from error
        finally:
            self._in_use.release()
        if wakes:
            self._woken()
        return result

    def _without_flush(self, work: Work[T]) -> T:
        # The log is written but not flushed; the next flushed commit flushes this one with it.
        self._conn.pragma("synchronous", "normal")
        try:
            return transact(self._cur, work, self._now, self._identity)
        finally:
            self._conn.pragma("synchronous", self._settings.sync)

    def _transact(self, work: Work[T]) -> T:
        if self._settings.sync == "full" and self._identity.log_size > self._space.reserved:

            def work_in_space(cur: Cursor, now: int) -> T:
                self._identity.log_is_short = not self._space.reserve(self._identity.log_size)
                return work(cur, now)

            return transact(self._cur, work_in_space, self._now, self._identity)
        return transact(self._cur, work, self._now, self._identity)

    async def submit(self, work: Work[T], *, wakes: bool = False) -> T:
        """Through the thread, which waits for other processes as long as the settings say."""
        loop = asyncio.get_running_loop()
        job = WriteJob(work, loop.create_future(), loop, wakes)
        with self._gate:
            if self._closed:
                raise closed(self._settings.path)
            self._queue.put(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="holdfast-writer", daemon=True)
                self._thread.start()
        return await job.future

    def read_if_idle(self, query: Callable[[Cursor], T]) -> T | WriterBusy:
        """Reads through the writing connection; BUSY while it is in use."""
        if self._closed or not self._in_use.acquire(False):
            return BUSY
        try:
            return query(self._cur)
        except apsw.Error:
            return BUSY  # the next call that needs an answer reports the error
        finally:
            self._in_use.release()

    def close(self) -> None:
        """Finishes what is queued. Blocks: call it from a thread."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            self._queue.put(None)
        if thread is not None:
            thread.join()
        with self._in_use:
            self._conn.close()

    def abandon(self) -> None:
        """In a forked child: the connection belongs to the parent, and one of the parent's threads may hold
        the locks."""
        self._closed = True
        self._gate = threading.Lock()
        self._in_use = threading.Lock()

    def _translated(self, error: apsw.Error) -> Exception:
        try:
            self._identity.check_error(error)
        except StoreReplacedError as replaced:
            return replaced  # it explains more than what SQLite makes of it
        return translated(error, self._settings.path, _system_errno(self._conn))

    # The thread.

    def _serve(self) -> None:
        open_ = True
        while open_:
            jobs, open_ = self._take()
            if jobs:
                with self._in_use:
                    self._conn.set_busy_timeout(self._settings.busy_ms)
                    try:
                        self._together(jobs)
                    finally:
                        self._conn.set_busy_timeout(0)
                self._deliver(jobs)

    def _take(self) -> tuple[list[WriteJob], bool]:
        """Everything that is queued, waiting for the first job; False once the store closes."""
        jobs: list[WriteJob] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs, True
        return jobs, False

    def _together(self, jobs: list[WriteJob]) -> None:
        """All jobs in one transaction; if one of them fails, each in its own."""
        try:
            results = self._transact(lambda cur, now: [job.work(cur, now) for job in jobs])
        except StoreReplacedError as error:
            for job in jobs:
                job.error = error
        # Not the fault of one job: each alone would fail in the same way, after the same wait.
        except (apsw.BusyError, apsw.FullError, apsw.IOError) as error:
            fault = self._translated(error)
            for job in jobs:
                job.error = fault
        except Exception as error:
            if len(jobs) > 1:
                for job in jobs:
                    self._together([job])
            else:
                jobs[0].error = self._translated(error) if isinstance(error, apsw.Error) else error
        # Whatever it is, its callers get it: without the thread all later writes would wait for ever.
        except BaseException as error:
            for job in jobs:
                job.error = error
        else:
            for job, result in zip(jobs, results, strict=True):
                job.result = result

    def _deliver(self, jobs: list[WriteJob]) -> None:
        """One call into each event loop, however many futures wait there."""
        if any(job.wakes and job.error is None for job in jobs):
            self._woken()
        by_loop: dict[asyncio.AbstractEventLoop, list[WriteJob]] = {}
        for job in jobs:
            by_loop.setdefault(job.loop, []).append(job)
        for loop, of_loop in by_loop.items():
            with contextlib.suppress(RuntimeError):  # that loop is closed: no caller waits for the result
                loop.call_soon_threadsafe(_resolve, of_loop)


def _others_are_ready() -> bool:
    """Whether the loop has something else to run now. True where the loop does not show it."""
    ready: Sized | None = getattr(asyncio.get_running_loop(), "_ready", None)
    return ready is None or len(ready) > 0


def _resolve(jobs: list[WriteJob]) -> None:
    for job in jobs:
        if job.future.done():
            continue  # its caller was cancelled
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)


def _system_errno(conn: Connection) -> int:
    try:
        return conn.system_errno
    except apsw.Error:
        return 0
