"""The connections of a store: one pool for each event loop that uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from holdfast.errors import HoldfastError
from holdfast.store.sql.connection_pools import TRIES, ServerPools
from holdfast.store.sql.mariadb.address import MariadbSettings
from holdfast.store.sql.mariadb.dialect import MariadbConn
from holdfast.store.sql.mariadb.errors import (
    DRIVER_ERRORS,
    closed,
    is_lost,
    is_repeatable,
    old_primary,
    translated,
)
from holdfast.store.sql.mariadb.failover import PrimaryCheck
from holdfast.store.sql.mariadb.feed import announce
from holdfast.store.sql.mariadb.session import drop, leave

T = TypeVar("T")

Work = Callable[[MariadbConn], Awaitable[T]]
"""Runs inside an open transaction. May be called again after a rollback, so it keeps no state
between calls."""

_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)


class _NotBegunError(Exception):
    """The connection was lost before the transaction began: nothing can have been written."""


class LoopPool:
    """The connections of one event loop, the last used first."""

    def __init__(self, settings: MariadbSettings, primary: PrimaryCheck, packet: int = 0) -> None:
        self._settings = settings
        self._primary = primary
        self._packet = packet
        self._generations: dict[Any, int] = {}
        self._places = asyncio.Semaphore(settings.pool)
        self._free: list[Any] = []
        self._used: set[Any] = set()
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[MariadbConn]:
        async with asyncio.timeout(self._settings.timeout):
            await self._places.acquire()
        raw: Any = None
        try:
            raw = self._unused()
            if raw is None:
                raw, generation = await self._primary.connect()
                self._generations[raw] = generation
            self._used.add(raw)
            conn = MariadbConn(raw, self._packet)
            # The statement is cut off a little after the server has to have done so itself.
            async with asyncio.timeout(self._settings.statement_timeout + 5):
                await self._primary.verify(conn, self._generations[raw])
                yield conn
            if self._is_old(raw):
                raise old_primary(self._settings.shown)
            if self._closed:
                self._drop(raw)
            else:
                self._free.append(raw)
        except BaseException:
            # Whatever it was doing: it is not used again.
            if raw is not None:
                self._drop(raw)
            raise
        finally:
            self._used.discard(raw)
            self._places.release()

    def _unused(self) -> Any:
        """The last used connection that the server has not closed meanwhile."""
        while self._free:
            raw = self._free.pop()
            if not getattr(raw, "_stream_broken", False) and not self._is_old(raw):
                return raw
            self._drop(raw)
        return None

    def _is_old(self, raw: Any) -> bool:
        """Whether another server has taken over since: what this one says counts for nothing."""
        return self._generations.get(raw, 0) < self._primary.generation

    def _drop(self, raw: Any) -> None:
        self._generations.pop(raw, None)
        drop(raw)

    async def close(self) -> None:
        self._closed = True
        free, self._free = self._free, []
        for raw in free:
            await leave(raw)

    def drop(self) -> None:
        self._closed = True
        for raw in (*self._free, *self._used):
            drop(raw)
        self._free = []


class MariadbPools(ServerPools):
    def __init__(self, settings: MariadbSettings, primary: PrimaryCheck, packet: int = 0) -> None:
        super().__init__(settings.timeout)
        self._settings = settings
        self._primary = primary
        self._packet = packet

    async def read(self, query: Work[T]) -> T:
        return await self._finish(self._retried(query, reads=True))

    async def read_together(self, query: Work[T]) -> T:
        async def together(conn: MariadbConn) -> T:
            await conn.send_all(_SNAPSHOT)
            found = await query(conn)
            await conn.send("COMMIT")
            return found

        return await self._finish(self._retried(together, reads=True))

    async def write(self, work: Work[T]) -> T:
        """BEGIN, the work, COMMIT; on any failure nothing of it is kept (D-8)."""

        async def transact(conn: MariadbConn) -> T:
            try:
                await conn.send("BEGIN")
            except DRIVER_ERRORS as error:
                raise _NotBegunError from error
            conn.announced.clear()
            try:
                done = await work(conn)
                await conn.send_all([*announce(conn.announced), "COMMIT"])
            except BaseException as error:
                # After a deadlock the server has rolled back, after a lock wait it has not.
                if not isinstance(error, DRIVER_ERRORS) or not is_lost(error):
                    await conn.send("ROLLBACK")
                raise
            return done

        # Not after a lost connection: the commit may have happened, and only the caller knows whether it may
        # be repeated.
        return await self._finish(self._retried(transact, reads=False))

    async def write_at_once(self, work: Work[T]) -> T:
        """Work that is a transaction by itself."""
        return await self._finish(self._retried(work, reads=False))

    async def _retried(self, act: Work[T], *, reads: bool) -> T:
        tries = 0
        while True:
            tries += 1
            try:
                return await self._attempt(act)
            except HoldfastError:
                raise
            except (_NotBegunError, *DRIVER_ERRORS) as error:
                cause = error.__cause__ if isinstance(error, _NotBegunError) else error
                assert cause is not None
                # The timeout of a server that does not answer is over already: one more try, then the caller
                # gets the error.
                most = 2 if isinstance(cause, TimeoutError) else TRIES
                again = is_repeatable(cause) or (
                    (reads or isinstance(error, _NotBegunError)) and is_lost(cause)
                )
                if tries < most and again:
                    await asyncio.sleep(0.01 * tries)
                    continue
                raise translated(cause, self._settings.shown) from cause

    async def _attempt(self, act: Work[T]) -> T:
        """A transaction that was rolled back leaves its connection usable."""
        pool = await self._pool()
        failed: BaseException | None = None
        async with pool.connection() as conn:
            try:
                return await act(conn)
            except DRIVER_ERRORS as error:
                if is_lost(error) or not is_repeatable(error):
                    raise
                failed = error
        raise failed

    async def _pool(self) -> LoopPool:
        if self._closed:
            raise closed(self._settings.shown)
        loop = asyncio.get_running_loop()
        with self._lock:
            pool = self._pools.get(loop)
            if pool is None:
                pool = self._pools[loop] = LoopPool(self._settings, self._primary, self._packet)
        if loop not in self._kept:
            await self._keep(loop, pool.close)
        return pool

    def _terminate_pool(self, pool: LoopPool) -> None:
        pool.drop()
