"""What a dialect provides to the shared methods of the store: its time, and ways to read and write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from holdfast.store.sql.connection import Query, Work

T = TypeVar("T")


class SqlAccess(ABC):
    """The base of every part of an SQL store."""

    @abstractmethod
    def now(self) -> int: ...

    @abstractmethod
    def _server_time(self) -> int | None:
        """The argument of `@now(?)`: None where the server's own clock counts."""

    @abstractmethod
    async def _read(self, query: Query[T], *, together: bool = False, slow: bool = False) -> T:
        """`together`: several statements that must see the same moment. `slow`: may take a tenth of a second,
        so a dialect that reads in place uses a thread."""

    async def _peek(self, query: Query[T]) -> T:
        """Reads a few rows by key that were probably written just now."""
        return await self._read(query)

    @abstractmethod
    async def _write(
        self,
        work: Work[T],
        *,
        wakes: bool = False,
        single: bool = False,
        server_time: bool = False,
        flushed: bool = True,
    ) -> T:
        """One transaction.

        `wakes`: it may concern a worker, in this process or another. `single`: the work is one statement,
        which needs no BEGIN and COMMIT of its own. `server_time`: the work passes its time to `@now(?)`, so
        it may be None, for the clock of the server. Not `flushed`: a power cut may lose it, but never without
        everything written after it.
        """
