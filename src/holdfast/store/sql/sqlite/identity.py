"""Whether the database file is still the one that was opened, and whether it went back in time.

A process keeps writing to a file that was removed or replaced, and SQLite reports no error: what it
acknowledged would be gone with the process. So after each commit, before it is acknowledged, the path is
compared with what was opened. What happened while no process had the file open is found by a mark beside it.
"""

from __future__ import annotations

from os import getpid, stat
from pathlib import Path
from typing import Final

import msgspec

from holdfast.errors import StoreReplacedError
from holdfast.store.sql.sqlite.connect import Cursor, row
from holdfast.telemetry import log
from holdfast.types.clock import iso

MARK: Final = "-mark"


class FileIdentity:
    """Of an open database and its write-ahead log."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._wal_path = path + "-wal"
        opened = stat(path)  # noqa: PTH116
        self._file = opened.st_dev, opened.st_ino
        # Known from the first commit on: before it, another process may be the last to close the file, which
        # deletes the log.
        self._wal: tuple[int, int] | None = None
        self.log_size = 0

    def check(self) -> None:
        """Raises StoreReplacedError. Two calls of the system: it is called for each commit."""
        try:
            file = stat(self._path)  # noqa: PTH116
            log_file = stat(self._wal_path)  # noqa: PTH116
        except FileNotFoundError:
            if self._wal is None and Path(self._path).exists():
                return  # the first write makes the log
            raise self._explain() from None
        self.log_size = log_file.st_size
        if self._wal is None:
            self._wal = log_file.st_dev, log_file.st_ino
        if (
            (file.st_dev, file.st_ino) != self._file
            or (log_file.st_dev, log_file.st_ino) != self._wal
            or file.st_size == 0
        ):
            raise self._explain()

    def _explain(self) -> StoreReplacedError:
        what, place = "was replaced by another file", self._path
        file = Path(self._path)
        if not file.exists():
            what = "was removed"
        elif file.stat().st_size == 0:
            what = "was emptied"
        elif (file.stat().st_dev, file.stat().st_ino) == self._file:
            place = self._wal_path
            what = what if Path(place).exists() else "was removed"
        return _replaced(place, what)


def _replaced(path: str, what: str) -> StoreReplacedError:
    return StoreReplacedError(
        f"The file {path} {what} while this process used it: the last write is not acknowledged.",
        hint="Stop all processes that use this store, put the file and its -wal back or restore a backup, "
        "and start them again.",
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
