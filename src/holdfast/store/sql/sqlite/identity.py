"""Whether the database file is still the one that was opened, and whether it went back in time.

A process keeps writing to a file that was removed or replaced, and SQLite reports no error: what it
acknowledged would be gone with the process. So after each commit, before it is acknowledged, the path is
compared with what was opened. What happened while no process had the file open is found by a mark beside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Callable
from os import getpid
from pathlib import Path
from typing import Final
from weakref import WeakSet

import apsw
import msgspec

from holdfast.errors import StoreReplacedError
from holdfast.store.sql.sqlite.connect import Connection, Cursor, row
from holdfast.telemetry import log
from holdfast.types.clock import iso

MARK: Final = "-mark"

File = tuple[int, int, int]
"""Major and minor number of its device, and its inode."""

# The log's first bytes, for checksums in either byte order.
LOG_BEGINS: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_HEAD: Final = 100  # bytes of the header of a database
_FRAME: Final = 24  # bytes before each page in the log
_DAMAGE: Final = (apsw.CorruptError, apsw.IOError, apsw.NotADBError)
_HERE: Final = -100  # AT_FDCWD: paths are relative to the folder of the process
_INODE_AND_SIZE: Final = 0x100 | 0x200


class _Statx(ctypes.Structure):
    _fields_ = (
        ("_before", ctypes.c_char * 32),
        ("inode", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("_times", ctypes.c_char * 88),
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("_after", ctypes.c_char * 112),
    )


_Answer = _Statx * 1  # an array is given by its address


def _locator(path: str) -> Callable[[], tuple[File, int]]:
    """Returns a call that says which file is at the path, and its size.

    It does not ask for times, as `os.stat` does. Since Linux 6.13 a file whose time was asked for gets an
    exact time with its next write, and so a changed inode, which ext4 without a journal writes with each
    flush."""

    def by_stat() -> tuple[File, int]:
        found = os.stat(path)  # noqa: PTH116
        return (os.major(found.st_dev), os.minor(found.st_dev), found.st_ino), found.st_size

    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except (AttributeError, OSError, TypeError):
        return by_stat  # not Linux, or an old C library
    encoded = os.fsencode(path)

    def by_statx() -> tuple[File, int]:
        answer = _Answer()
        if statx(_HERE, encoded, 0, _INODE_AND_SIZE, answer):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        found = answer[0]
        return (found.major, found.minor, found.inode), found.size

    try:
        by_statx()
    except FileNotFoundError:
        return by_statx
    except OSError:
        return by_stat  # a sandbox that does not know the call
    return by_statx


class FileIdentity:
    """Of an open database, its write-ahead log and the log's index (-shm), in which the locks are. `path` may
    be a link: SQLite keeps the others beside the file that it names."""

    def __init__(self, path: str) -> None:
        self._path = path
        beside = os.path.realpath(path)
        self.wal_path = f"{beside}-wal"
        self._index_path = f"{beside}-shm"
        self._locate = _locator(path)
        self._locate_wal = _locator(self.wal_path)
        self._locate_index = _locator(self._index_path)
        self._file, self._size = self._locate()
        # Known from the first commit on: before it, another process may be the last to close the file, which
        # deletes the log and its index.
        self._wal: File | None = None
        self._index: File | None = None
        self._log = -1  # a descriptor of the log
        self._connections = WeakSet[Connection]()
        self._position: StorePosition | None = None
        self.log_size = 0
        self.log_is_short = False  # it was shorter than that before the last commit

    def adopt(self, connection: Connection) -> Connection:
        """Of the open database: none of them writes back a log that was emptied."""
        self._connections.add(connection)
        return connection

    def check_commit(self, cur: Cursor) -> None:
        """Raises StoreReplacedError; for each commit, before it is acknowledged. Three calls of the system.
        `check_index` comes before the commit.

        SQLite writes behind the end that it remembers, so a log that was emptied has zeros where its header
        was, and would be ignored after a crash. A checkpoint of another process may have emptied it too: then
        the next write begins it anew."""
        self.check_files()
        # `_log_has_no_header`, without the call: this is done for each commit.
        if self._log >= 0 and os.pread(self._log, 4, 0) not in LOG_BEGINS:
            _write_again(cur)
            self.check()
            if self._log_has_no_header():
                raise self._log_emptied()

    def check_error(self, error: apsw.Error) -> None:
        """Raises StoreReplacedError if the error may come from it."""
        known = self.log_size
        self.check()
        if isinstance(error, _DAMAGE) and self._log_has_no_header():
            raise self._log_emptied()
        if isinstance(error, _DAMAGE) and self.log_size < known:
            raise self._log_cut_off()

    def check(self) -> None:
        """Raises StoreReplacedError if another file is at the path, or none."""
        self.check_index()
        self.check_files()

    def check_index(self) -> None:
        """Raises StoreReplacedError; for each commit, before its pages are written: the next process to open
        the database would make an index of its own, with locks of its own, and the two would write over each
        other."""
        if self._index is None:
            return
        try:
            if self._locate_index()[0] == self._index:
                return
        except FileNotFoundError:
            pass
        raise self._index_gone()

    def check_files(self) -> None:
        try:
            file, size = self._locate()
            if file != self._file or size == 0:
                raise self._explain()
            log_file, log_size = self._locate_wal()
            if self._wal is None:
                self._index, _ = self._locate_index()
        except FileNotFoundError:
            if self._wal is None and Path(self._path).exists():
                return  # the first write makes the log
            raise self._explain() from None
        if self._wal is None:
            self._wal = log_file
            self._log = os.open(self.wal_path, os.O_RDONLY | os.O_CLOEXEC)
        if log_file != self._wal:
            raise self._explain()
        # A vacuum makes the file shorter, and a checkpoint the log. Asked again: another thread may have seen
        # them later than this one, and longer.
        if size < self._size and self._locate()[1] < self._size and _lacks_pages(self._path):
            raise _replaced(self._path, "was cut off")
        if (log_size < self.log_size or self.log_is_short) and _has_gap(self._log):
            raise self._log_cut_off()
        self._size, self.log_size, self.log_is_short = size, log_size, False

    def check_position(self, found: StorePosition, mark: StoreMark | None) -> None:
        """Raises StoreReplacedError if the database went back since the last call, or since another process
        wrote the mark, which was read before."""
        for known in (self._position, mark and mark.position):
            missing = found.lacks(known) if known else ""
            if missing:
                raise _replaced(self._path, f"was overwritten ({missing})")
        self._position = found

    def close(self) -> None:
        if self._log >= 0:
            os.close(self._log)
            self._log = -1

    def _log_has_no_header(self) -> bool:
        return self._log >= 0 and os.pread(self._log, 4, 0) not in LOG_BEGINS

    def _log_emptied(self) -> StoreReplacedError:
        # The last one to close would copy what it takes for pages, zeros, over those of the database.
        self._leave_log()
        return _replaced(self.wal_path, "was emptied")

    def _log_cut_off(self) -> StoreReplacedError:
        self._leave_log()
        return _replaced(self.wal_path, "was cut off")

    def _index_gone(self) -> StoreReplacedError:
        # The last one to close, by an index that others do not have, would copy older pages over newer ones.
        self._leave_log()
        with contextlib.suppress(FileNotFoundError):
            if self._locate()[0] == self._file:
                what = "was replaced by another file" if Path(self._index_path).exists() else "was removed"
                return _replaced(self._index_path, what, hint=_INDEX_HINT)
        return self._explain()

    def _leave_log(self) -> None:
        for each in list(self._connections):
            with contextlib.suppress(apsw.Error):
                each.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _explain(self) -> StoreReplacedError:
        what, place = "was replaced by another file", self._path
        file = Path(self._path)
        if not file.exists():
            what = "was removed"
        elif file.stat().st_size == 0:
            what = "was emptied"
        elif self._locate()[0] == self._file:
            place = self.wal_path
            what = what if Path(place).exists() else "was removed"
        return _replaced(place, what)


def _write_again(cur: Cursor) -> None:
    """Any page, with what is in it, after another process if it writes now."""
    for _ in range(100):
        with contextlib.suppress(apsw.BusyError, *_DAMAGE):
            ((number,),) = cur.execute("PRAGMA user_version").fetchall()
            cur.execute(f"PRAGMA user_version = {number}")
            return
        time.sleep(0.01)


def _lacks_pages(path: str) -> bool:
    """Whether the database has more pages, by its header, than the file."""
    with Path(path).open("rb") as file:
        head = file.read(_HEAD)
        size = os.fstat(file.fileno()).st_size
    page_size = int.from_bytes(head[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    return len(head) < _HEAD or int.from_bytes(head[28:32], "big") * page_size > size


def _has_gap(log: int) -> bool:
    """Whether frames with the salts of the header follow one without them: what was between them is lost, and
    SQLite writes behind it."""
    head = os.pread(log, 32, 0)
    if head[:4] not in LOG_BEGINS:
        return False  # it was emptied
    step, salts, gap = int.from_bytes(head[8:12], "big") + _FRAME, head[16:24], False
    for at in range(32, os.fstat(log).st_size - _FRAME, step):
        is_frame = os.pread(log, 8, at + 8) == salts
        if is_frame and gap:
            return os.pread(log, 32, 0) == head  # otherwise another process has begun it anew meanwhile
        gap = gap or not is_frame
    return False


_HINT: Final = (
    "Stop all processes that use this store, put the file and its -wal back or restore a backup, "
    "and start them again."
)
_INDEX_HINT: Final = (
    "Stop all processes that use this store, and start them again: SQLite makes this file anew. "
    "Never delete it while one of them runs."
)


def _replaced(path: str, what: str, hint: str = _HINT) -> StoreReplacedError:
    return StoreReplacedError(
        f"the file {path} {what} while this process used it: the last write is not acknowledged.",
        hint=hint,
        path=path,
    )


class StorePosition(msgspec.Struct, frozen=True, kw_only=True):
    """How far a database has come; it never goes back by itself. `created_at` tells databases apart."""

    created_at: int
    runs: int
    feed: int

    def lacks(self, known: StorePosition) -> str:
        """What is missing of what is known, as text; '': nothing."""
        if self.created_at != known.created_at:
            return f"it is another database, created at {iso(self.created_at)}, not {iso(known.created_at)}"
        if self.runs < known.runs:
            return f"it has had {self.runs} runs, and had {known.runs} before"
        if self.feed < known.feed:
            return f"its newest change is number {self.feed}, and was {known.feed} before"
        return ""


class StoreMark(msgspec.Struct, frozen=True, kw_only=True):
    """The file FILE-mark. `lost`: what was found missing, with the time; it stays until the file is
    deleted."""

    position: StorePosition
    lost: str = ""


_POSITION = """
SELECT (SELECT min(applied_at) FROM migrations),
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0),
       max(coalesce((SELECT max(pos) FROM feed), 0), coalesce((SELECT max(pos) FROM feed_marks), 0))"""


def position(cur: Cursor) -> StorePosition:
    created_at, runs, feed = row(cur, _POSITION) or (0, 0, 0)
    return StorePosition(created_at=created_at, runs=runs, feed=feed)


def read_mark(path: str) -> StoreMark | None:
    """None if there is none that can be read."""
    try:
        return msgspec.json.decode(Path(path + MARK).read_bytes(), type=StoreMark)
    except (OSError, msgspec.MsgspecError):
        return None


def compare_with_mark(path: str, known: StoreMark | None, found: StorePosition, now: int) -> None:
    """Writes the mark, and logs what is missing. `known` was read before the position: other processes move
    both on, and a mark is never ahead of the database that it was made of."""
    lost = known.lost if known is not None else ""
    missing = "" if known is None else found.lacks(known.position)
    if missing:
        lost = f"found at {iso(now)}: {missing}"
        log.error("the database %s went back: %s. See `holdfast doctor`.", path, missing)
    write_mark(path, StoreMark(position=found, lost=lost))


def write_mark(path: str, mark: StoreMark) -> None:
    """Not written where the folder is read-only: then nothing can be told later."""
    partial = Path(f"{path}{MARK}.{getpid()}")
    try:
        partial.write_bytes(msgspec.json.encode(mark) + b"\n")
        partial.replace(path + MARK)
    except OSError as error:
        log.debug("the mark of %s could not be written: %s", path, error)
