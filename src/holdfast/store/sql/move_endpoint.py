"""One end of a move, on a server: what PostgreSQL and MariaDB do alike.

One connection moves a store: calls are made one at a time, some with every table locked.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from holdfast.errors import HoldfastError
from holdfast.store.copy import (
    BATCH,
    BLOB_BYTES,
    CopyProgress,
    CopyRule,
    MoveMark,
    MovePhase,
    TableShape,
    Values,
    WorkerLeases,
    batch_size,
    copy_progress,
    require_state,
)
from holdfast.store.sql.connection import Row

T = TypeVar("T")


class Statements(Protocol):
    """What is used of a connection."""

    async def rows(self, text: str, *args: Any) -> list[Row]: ...

    async def row(self, text: str, *args: Any) -> Row | None: ...

    async def run(self, text: str, *args: Any) -> int: ...


C = TypeVar("C", bound=Statements)
C_in = TypeVar("C_in", bound=Statements, contravariant=True)

_TRIES = 20
_HELD = """
SELECT worker, count(*), max(lease_until) FROM @runs WHERE worker IS NOT NULL AND lease_until > @now(NULL)
GROUP BY worker ORDER BY worker"""
_SIZES = "SELECT size FROM @blobs WHERE NOT condemned AND number > ? ORDER BY number LIMIT ?"


class CopyConnection(ABC, Generic[C]):
    """Connects on first use, and again if the connection is lost."""

    driver_errors: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self) -> None:
        self._raw: Any = None
        self._lock = asyncio.Lock()

    async def one(self, sql: str) -> Any:
        """The first value of the first row."""
        found = await self.read(lambda conn: conn.row(sql))
        return None if found is None else found[0]

    async def rows(self, sql: str) -> list[Values]:
        return await self.read(lambda conn: conn.rows(sql))

    async def read(self, query: Callable[[C], Awaitable[T]]) -> T:
        async with self._lock:
            try:
                return await query(await self._connected())
            except HoldfastError:
                raise
            except self.driver_errors as error:
                raise self._translated(error) from error

    async def write(self, work: Callable[[C], Awaitable[T]]) -> T:
        return await self.read(lambda conn: self._transact(conn, work))

    async def alone(self, work: Callable[[C], Awaitable[T]]) -> T:
        """With every table locked against writers. Other processes are working, so it may take several
        attempts."""

        async def trying(conn: C) -> T:
            left = _TRIES
            while True:
                left -= 1
                try:
                    return await self._locked(conn, work)
                except self.driver_errors as error:
                    if not left or not self._is_lock_refused(error):
                        raise
                    await asyncio.sleep(0.1)

        return await self.read(trying)

    async def close(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            await self._leave(raw)

    # What a dialect does.

    @abstractmethod
    async def _connected(self) -> C: ...

    @abstractmethod
    async def _transact(self, conn: C, work: Callable[[C], Awaitable[T]]) -> T: ...

    @abstractmethod
    async def _locked(self, conn: C, work: Callable[[C], Awaitable[T]]) -> T:
        """With every table locked against writers, or the error of a lock that is not given soon."""

    @abstractmethod
    def _is_lock_refused(self, error: BaseException) -> bool: ...

    @abstractmethod
    def _translated(self, error: BaseException) -> HoldfastError: ...

    @abstractmethod
    async def _leave(self, raw: Any) -> None:
        """Ends the session. Raises nothing."""


class MoveBarrier(Protocol[C_in]):
    """The functions of a dialect's `move_barrier`."""

    async def read_mark(self, conn: C_in) -> MoveMark | None: ...

    async def stop_claims(self, conn: C_in, mark: MoveMark) -> None: ...

    async def set_state(self, conn: C_in, state: MovePhase) -> None: ...


class ServerMoveEndpoint(ABC, Generic[C]):
    rows_column: ClassVar[str] = "rows"
    """The name of that column of `moved_tables`, as the dialect writes it."""

    def __init__(self, line: CopyConnection[C], barrier: MoveBarrier[C]) -> None:
        self._line = line
        self._barrier = barrier

    async def mark(self) -> MoveMark | None:
        return await self._line.read(self._barrier.read_mark)

    async def count(self, rule: CopyRule) -> int:
        return await self._line.one(f"SELECT count(*) FROM @{rule.table} WHERE {rule.where}")

    async def now(self) -> int:
        return await self._line.one("SELECT @now(NULL)")

    async def close(self) -> None:
        await self._line.close()

    async def leases(self) -> list[WorkerLeases]:
        return [WorkerLeases(*found) for found in await self._line.rows(_HELD)]

    async def stop_claims(self, mark: MoveMark) -> None:
        await self._line.alone(lambda conn: self._barrier.stop_claims(conn, mark))

    async def settle(self) -> None:
        async def settled(conn: C) -> None:
            require_state(await self._barrier.read_mark(conn), "sealed", "moved")
            await self._barrier.set_state(conn, "moved")

        await self._line.alone(settled)

    async def reached(self) -> dict[str, CopyProgress]:
        found = await self._line.rows(f"SELECT name, after, {self.rows_column}, done FROM @moved_tables")
        return {name: copy_progress(after, count, done) for name, after, count, done in found}

    async def put(
        self, shape: TableShape, batch: Sequence[Values], was: CopyProgress, now: CopyProgress
    ) -> bool:
        return await self._line.write(lambda conn: self._put(conn, shape, batch, was, now))

    async def _put(
        self, conn: C, shape: TableShape, batch: Sequence[Values], was: CopyProgress, now: CopyProgress
    ) -> bool:
        require_state(await self._barrier.read_mark(conn), "filling")
        rows = self.rows_column
        new = f"INSERT INTO @moved_tables (name, {rows}, done) VALUES (?, 0, false) ON CONFLICT DO NOTHING"
        reach = (
            f"UPDATE @moved_tables SET after = ?, {rows} = ?, done = ? "
            f"WHERE name = ? AND {rows} = ? AND done = ?"
        )
        await conn.run(new, shape.table)
        after = None if now.after is None else msgspec.msgpack.encode(now.after)
        # In the transaction of the rows, and only from the expected progress: a batch is never copied
        # twice, after a crash or by two processes.
        if not await conn.run(reach, after, now.rows, now.done, shape.table, was.rows, was.done):
            return False
        await conn.run("UPDATE @moved SET busy = true")
        await self._copy_in(conn, shape, batch)
        await conn.run("UPDATE @moved SET busy = false")
        return True

    @abstractmethod
    async def _copy_in(self, conn: C, shape: TableShape, batch: Sequence[Values]) -> None: ...


async def next_blobs(conn: Statements, after: Values | None) -> int:
    """The number of the next blobs that are read at once."""
    return batch_size((size for (size,) in await conn.rows(_SIZES, (after or (-1,))[0], BATCH)), BLOB_BYTES)
