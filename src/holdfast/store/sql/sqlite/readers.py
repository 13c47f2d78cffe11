"""Reading: a few connections that see the newest commit and never wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

import apsw

from holdfast.store.sql.sqlite.connect import Cursor, SqliteSettings, connect_reader
from holdfast.store.sql.sqlite.errors import closed, translated
from holdfast.store.sql.sqlite.identity import FileIdentity

T = TypeVar("T")


class SqliteReaders:
    """One connection for each thread that reads at the same time. In a WAL database they never wait for
    writers."""

    def __init__(self, settings: SqliteSettings, identity: FileIdentity) -> None:
        self._settings = settings
        self._identity = identity
        self._idle: deque[Cursor] = deque()
        self._closed = False

    def read(self, query: Callable[[Cursor], T]) -> T:
        if self._closed:
            raise closed(self._settings.path)
        try:
            cur = self._take()
            try:
                return query(cur)
            finally:
                self._give_back(cur)
        except apsw.Error as error:
            self._identity.check_error(error)  # a missing file explains more than what SQLite makes of it
            raise translated(error, self._settings.path) from error

    def read_together(self, query: Callable[[Cursor], T]) -> T:
        """Several statements that see the same moment."""

        def whole(cur: Cursor) -> T:
            cur.execute("BEGIN")
            try:
                return query(cur)
            finally:
                cur.execute("COMMIT")

        return self.read(whole)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().connection.close()

    def abandon(self) -> None:
        """In a forked child: the connections stay open, because they belong to the parent."""
        self._closed = True

    def _take(self) -> Cursor:
        try:
            return self._idle.pop()
        except IndexError:
            self._identity.check()
            return self._identity.adopt(connect_reader(self._settings)).cursor()

    def _give_back(self, cur: Cursor) -> None:
        if self._closed:
            cur.connection.close()
        else:
            self._idle.append(cur)
