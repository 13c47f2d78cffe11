"""The connections of a store: one pool for each event loop that uses it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from holdfast.errors import HoldfastError
from holdfast.store.sql.connection_pools import TRIES, ServerPools
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.dialect import PostgresConn
from holdfast.store.sql.postgres.errors import (
    CONNECTION_ERRORS,
    DRIVER_ERRORS,
    RETRYABLE_ERRORS,
    closed,
    is_repeatable,
    translated,
)
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.postgres.session import PostgresServer, identify, idle_timeout_statement

T = TypeVar("T")

Work = Callable[[PostgresConn], Awaitable[T]]
"""Runs inside an open transaction. May be called again after a rollback, so it keeps no state
between calls."""

ArrivalHook = Callable[[PostgresConn], Awaitable[None]]

_UNUSED = 10.0  # seconds after which a connection that is kept for the next caller goes back to the pool
_READ_ONLY = asyncpg.ReadOnlySQLTransactionError
_driver: Any = asyncpg  # half annotated


async def connect(settings: PostgresSettings, *, pooled: bool) -> Any:
    """A separate connection to the primary. Raises the driver's errors."""
    return await PostgresServers(settings).connect(pooled=pooled)


class PostgresPools(ServerPools):
    def __init__(self, servers: PostgresServers, *, pooled: bool, arrived: ArrivalHook | None = None) -> None:
        """`arrived` is called on a new timeline before anything else is done there."""
        super().__init__(servers.settings.timeout)
        self._settings = servers.settings
        self._servers = servers
        self._pooled = pooled
        self._arrived = arrived
        self._at = servers.timeline
        self._arriving = False
        self._used: dict[Any, asyncio.AbstractEventLoop] = {}
        # For each loop, the connection that was used last: one caller after the other takes it without the
        # pool, whose acquire and release cost two turns of the loop and a timer.
        self._spares: WeakKeyDictionary[asyncio.AbstractEventLoop, SpareConnection] = WeakKeyDictionary()
        self._watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _SilenceWatch] = WeakKeyDictionary()
        self._looks: set[asyncio.Task[None]] = set()
        servers.on_leaving(self._leave)

    async def read(self, query: Work[T]) -> T:
        return await self._finish(self._translating(query, (*RETRYABLE_ERRORS, *CONNECTION_ERRORS)))

    async def read_together(self, query: Work[T]) -> T:
        async def together(conn: PostgresConn) -> T:
            async with _transaction(conn, isolation="repeatable_read", readonly=True):
                return await query(conn)  # it locks nothing

        return await self._finish(self._translating(together, (*RETRYABLE_ERRORS, *CONNECTION_ERRORS)))

    async def write(self, work: Work[T]) -> T:
        """BEGIN, the work, COMMIT; on any failure nothing of it is kept (D-8)."""

        async def transact(conn: PostgresConn) -> T:
            async with _transaction(conn):
                if self._pooled:
                    await conn.raw.execute(idle_timeout_statement(self._settings))
                return await work(conn)

        # Not after a lost connection: the commit may have happened, and only the caller knows whether it may
        # be repeated.
        return await self._finish(self._translating(transact, RETRYABLE_ERRORS))

    async def write_at_once(self, work: Work[T]) -> T:
        """Work that is one statement, which is a transaction by itself."""
        return await self._finish(self._translating(work, RETRYABLE_ERRORS))

    async def _translating(self, act: Work[T], again: tuple[type[BaseException], ...]) -> T:
        tries = 0
        while True:
            tries += 1
            try:
                return await self._with_connection(act)
            except HoldfastError:
                raise
            except DRIVER_ERRORS as error:
                if isinstance(error, (*CONNECTION_ERRORS, _READ_ONLY, asyncpg.InternalClientError)):
                    self._servers.doubt()
                if isinstance(error, _READ_ONLY):
                    # The server became a replica and refused: every connection is replaced, and looks for the
                    # primary.
                    await self._expire()
                # The timeout of a server that does not answer is over already: one more try, then the caller
                # gets the error.
                most = 2 if isinstance(error, TimeoutError) else TRIES
                if tries < most and (isinstance(error, (*again, _READ_ONLY)) or is_repeatable(error)):
                    await asyncio.sleep(0.01 * tries)
                    continue
                raise translated(error, self._settings.shown) from error

    async def _with_connection(self, act: Work[T]) -> T:
        """On a connection to the newest known primary, watched while it is used: if it gets no answer for
        long, its server may be gone without closing it."""
        if self._servers.due():
            self._look(silent=False)
        loop = asyncio.get_running_loop()
        pool = await self._pool()
        spare = self._spares[loop]
        raw = spare.take()
        if raw is None or not self._servers.is_current(raw):
            if raw is not None:
                raw.terminate()
                await pool.release(raw)
            raw = await self._current(pool)
        watch = self._watches[loop]
        watch.begin(raw)
        self._used[raw] = loop
        answered = True
        try:
            await self._greet(raw)
            result = await act(PostgresConn(raw, self._settings.schema))
            if not self._servers.is_current(raw):
                # Another server took over meanwhile: the answer of this one does not count.
                raise _driver.ConnectionDoesNotExistError("it led to an old primary")
            return result
        except (TimeoutError, asyncio.CancelledError):
            # Its statement may go on until the server has cancelled it: the pool waits for that.
            answered = False
            raise
        finally:
            watch.end(raw)
            self._used.pop(raw, None)
            if not (answered and spare.keep(raw)):
                await pool.release(raw)

    async def _current(self, pool: Any) -> Any:
        """Connections to an old primary are closed."""
        while True:
            # A free connection is taken at once; only a caller that has to wait needs a timeout (and a task
            # for it).
            limit = None if pool.get_idle_size() else self._settings.timeout
            raw = await pool.acquire(timeout=limit)
            if self._servers.is_current(raw):
                return raw
            raw.terminate()
            await pool.release(raw)

    async def _greet(self, raw: Any) -> None:
        if self._pooled and time.monotonic() - raw.who.asked_at > self._settings.look:
            await identify(raw, self._settings)
            self._servers.admit(raw.who)
        while self._at != self._servers.timeline:
            await self._arrive(PostgresConn(raw, self._settings.schema))

    async def _arrive(self, conn: PostgresConn) -> None:
        """One check for all loops; if it fails, the next caller tries again."""
        with self._lock:
            mine, self._arriving = not self._arriving, True
        if not mine:
            await asyncio.sleep(0.01)
            return
        try:
            timeline = self._servers.timeline
            if self._arrived is not None:
                await self._arrived(conn)
            self._at = timeline
        finally:
            self._arriving = False

    def _look(self, *, silent: bool = True) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._servers.look(silent=silent), context=Context())
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)
        return task

    def _leave(self, server: PostgresServer | None) -> None:
        """Calls on connections that are closed fail now, and are retried on another server."""
        for raw, loop in list(self._used.items()):
            left = not self._servers.is_current(raw) if server is None else raw.who.server == server
            if left:
                with suppress(RuntimeError):  # its loop is closed
                    loop.call_soon_threadsafe(_terminate, raw)

    async def _pool(self) -> Any:
        if self._closed:
            raise closed(self._settings.shown)
        loop = asyncio.get_running_loop()
        with self._lock:
            pool = self._pools.get(loop)
            if pool is None:
                pool = self._pools[loop] = _driver.create_pool(
                    min_size=0,
                    max_size=self._settings.pool,
                    connect=partial(self._servers.connect, pooled=self._pooled),
                    # No session state is ever set, so there is nothing to reset.
                    reset=_no_reset,
                )
        if loop not in self._kept:
            await pool
            self._watches[loop] = _SilenceWatch(loop, self._settings.look, self._look)
            self._spares[loop] = spare = SpareConnection(loop, pool)
            await self._keep(loop, partial(_close, pool, spare))
        return pool

    async def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is not None:
            await pool.expire_connections()
            await self._spares[loop].release()

    async def close(self) -> None:
        here = asyncio.get_running_loop()
        for look in [look for look in self._looks if look.get_loop() is here]:
            look.cancel()
        await super().close()

    def _terminate_pool(self, pool: Any) -> None:
        pool.terminate()


class _SilenceWatch:
    """Checks the server when a statement has had no answer for a while, and again after that. One timer for
    all statements of a loop, left running between them: making and cancelling one for each costs more."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, patience: float, look: Callable[[], asyncio.Task[None]]
    ) -> None:
        self._loop = loop
        self._patience = patience
        self._look = look
        self._since: dict[Any, float] = {}  # by connection
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, raw: Any) -> None:
        self._since[raw] = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience, self._check)

    def end(self, raw: Any) -> None:
        self._since.pop(raw, None)

    def _check(self) -> None:
        self._timer = None
        if not self._since:
            return
        left = min(self._since.values()) + self._patience - self._loop.time()
        if left <= 0:
            self._look()
            left = self._patience
        self._timer = self._loop.call_later(left, self._check)


class SpareConnection:
    """One connection of a loop's pool that is kept for the next caller. If it is not used for a while it goes
    back to the pool, which closes it some time later."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: Any) -> None:
        self._loop = loop
        self._pool = pool
        self._raw: Any = None
        self._taken = 0
        self._seen = 0
        self._closed = False
        self._check: asyncio.TimerHandle | None = None
        self._releasing: asyncio.Task[None] | None = None

    def take(self) -> Any:
        """None: another caller has it, or there is none."""
        raw, self._raw = self._raw, None
        self._taken += 1
        return raw if raw is not None and _is_open(raw) else None

    def keep(self, raw: Any) -> bool:
        """Whether it is kept; otherwise it goes back to the pool."""
        if self._raw is not None or self._closed or not _is_open(raw):
            return False
        self._raw = raw
        if self._check is None:
            self._check = self._loop.call_later(_UNUSED, self._release_if_unused)
        return True

    async def release(self) -> None:
        if self._raw is not None:
            raw, self._raw = self._raw, None
            await self._pool.release(raw)

    async def close(self) -> None:
        self._closed = True
        if self._check is not None:
            self._check.cancel()
        await self.release()

    def _release_if_unused(self) -> None:
        self._check = None
        if self._raw is None:
            return
        if self._seen == self._taken:
            self._releasing = self._loop.create_task(self.release(), context=Context())
            return
        self._seen = self._taken
        self._check = self._loop.call_later(_UNUSED, self._release_if_unused)


def _is_open(raw: Any) -> bool:
    try:
        return not raw.is_closed()
    except _driver.InterfaceError:
        return False  # the server closed it, and the pool has it back already


def _terminate(raw: Any) -> None:
    with suppress(_driver.InterfaceError):  # released meanwhile
        raw.terminate()


async def _no_reset(_connection: Any) -> None:
    return None


async def _close(pool: Any, spare: SpareConnection) -> None:
    try:
        # First: the pool waits for all connections that were taken from it.
        await spare.close()
        await asyncio.wait_for(pool.close(), 5)
    except (TimeoutError, *DRIVER_ERRORS):
        pool.terminate()


@asynccontextmanager
async def _transaction(conn: PostgresConn, **how: Any) -> AsyncGenerator[None]:
    raw: Any = conn.raw
    async with raw.transaction(**how):
        yield
