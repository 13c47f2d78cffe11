"""Space in the write-ahead log before it is needed.

To flush a file that has grown, the system also writes its size and its new blocks: a commit takes about half
as long again as one that writes where the log has been before. So the log grows by large pieces of zeros.
SQLite ignores them, as it ignores what an earlier round left there: a frame counts only with the salt of the
log's header.
"""

from __future__ import annotations

import contextlib
import os

LEAST = 64 << 10
MOST = 1 << 20


class LogSpace:
    def __init__(self, path: str) -> None:
        self._path = path + "-wal"
        self.reserved = 0  # a longer log was made so by SQLite: the reserved part is used up

    def reserve(self) -> None:
        """Only with SQLite's write lock: a frame of another process would be overwritten. Without space on
        the disk nothing is reserved, and SQLite reports it where it matters."""
        with contextlib.suppress(OSError):
            file = os.open(self._path, os.O_WRONLY)
            try:
                end = os.fstat(file).st_size
                self.reserved = end
                self.reserved += os.pwrite(file, bytes(min(max(end, LEAST), MOST)), end)
            finally:
                os.close(file)
