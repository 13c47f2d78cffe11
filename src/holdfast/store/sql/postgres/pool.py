"""Where connections come from: one pool for each event loop that uses the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from holdfast.errors import HoldfastError
from holdfast.store.sql.postgres.address import Settings
from holdfast.store.sql.postgres.connect import Conn
from holdfast.store.sql.postgres.faults import AGAIN, FAULTS, LOST, closed, translated

T = TypeVar("T")

Work = Callable[[Conn], Awaitable[T]]
"""Inside an open transaction. May be called again after a rollback: it keeps nothing of its own between."""

_TRIES = 5
_driver: Any = asyncpg  # half annotated


async def connect(settings: Settings, *, pooled: bool) -> Any:
    """A connection of its own. Raises the driver's errors."""
    return await _driver.connect(settings.dsn, **options(settings, pooled=pooled))


def options(settings: Settings, *, pooled: bool) -> dict[str, Any]:
    return {
        "timeout": settings.timeout,
        "command_timeout": settings.statement_timeout,
        # Whoever is asked must take writes: with several hosts, that is the primary, whichever it is now.
        "target_session_attrs": "read-write",
        # A prepared statement belongs to a session, and behind a pooler the next call may meet another one.
        "statement_cache_size": 0 if pooled else 256,
        "max_cacheable_statement_size": 64 << 10,
    }


class Pools:
    def __init__(self, settings: Settings, *, pooled: bool) -> None:
        self._settings = settings
        self._pooled = pooled
        self._lock = threading.Lock()
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._kept: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None]] = WeakKeyDictionary()
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def read(self, query: Work[T]) -> T:
        """One statement, or several that need no common moment. A lost connection is simply replaced."""
        return await self._finish(query, again=(*AGAIN, *LOST))

    async def read_together(self, query: Work[T]) -> T:
        """As of one moment."""

        async def together(conn: Conn) -> T:
            async with _transaction(conn, isolation="repeatable_read", readonly=True):
                return await query(conn)

        return await self._finish(together, again=(*AGAIN, *LOST))

    async def write(self, work: Work[T]) -> T:
        """BEGIN, the work, COMMIT; on any failure nothing of it is kept (D-8)."""

        async def transact(conn: Conn) -> T:
            async with _transaction(conn):
                return await work(conn)

        return await self._finish(transact, again=AGAIN)

    async def write_at_once(self, work: Work[T]) -> T:
        """Work that is one statement, which is a transaction of its own."""
        return await self._finish(work, again=AGAIN)

    async def _finish(self, act: Work[T], again: tuple[type[BaseException], ...]) -> T:
        """Whoever waits may be cancelled; what was sent is brought to its end, as in any other store. In an
        empty context: timers and sockets keep the one that they were made in, and with it a whole run."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._translating(act, again), context=Context())
        self._running.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # somebody heard of it, or nobody waits any more

    async def _translating(self, act: Work[T], again: tuple[type[BaseException], ...]) -> T:
        tries = 0
        while True:
            tries += 1
            try:
                async with self._acquired() as conn:
                    return await act(conn)
            except HoldfastError:
                raise
            except FAULTS as error:
                if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                    await self._expire()
                if tries < _TRIES and isinstance(error, again):
                    await asyncio.sleep(0.01 * tries)
                    continue
                raise translated(error, self._settings.shown) from error

    @asynccontextmanager
    async def _acquired(self) -> AsyncGenerator[Conn]:
        pool = await self._pool()
        async with pool.acquire(timeout=self._settings.timeout) as raw:
            yield Conn(raw, self._settings.schema)

    async def _pool(self) -> Any:
        if self._closed:
            raise closed(self._settings.shown)
        loop = asyncio.get_running_loop()
        with self._lock:
            pool = self._pools.get(loop)
            if pool is None:
                pool = self._pools[loop] = _driver.create_pool(
                    self._settings.dsn,
                    min_size=0,
                    max_size=self._settings.pool,
                    # Nothing of a session is ever set: there is nothing to reset.
                    reset=_leave,
                    **options(self._settings, pooled=self._pooled),
                )
        await pool
        if loop not in self._kept:
            self._kept[loop] = _kept(pool)
            await anext(self._kept[loop])
        return pool

    async def _expire(self) -> None:
        """The server became a replica: each connection is made anew, and looks for the primary."""
        pool = self._pools.get(asyncio.get_running_loop())
        if pool is not None:
            await pool.expire_connections()

    async def close(self) -> None:
        self._closed = True
        with self._lock:
            pools = list(self._pools.items())
            self._pools.clear()
        here = asyncio.get_running_loop()
        running = [task for task in self._running if task.get_loop() is here]
        if running:
            await asyncio.wait(running, timeout=self._settings.timeout)
        for loop, pool in pools:
            kept = self._kept.pop(loop, None)
            if loop is here:
                await (_close(pool) if kept is None else kept.aclose())
            elif not loop.is_closed():
                loop.call_soon_threadsafe(pool.terminate)

    def abandon(self) -> None:
        """In a forked child: the connections are the parent's."""
        self._closed = True
        _inherited.append(self._pools)
        self._pools = WeakKeyDictionary()


_inherited: list[Any] = []  # never finalised: closing a connection would end the parent's


async def _kept(pool: Any) -> AsyncGenerator[None]:
    """Ends with its loop: what `asyncio.run` leaves open it closes, and with it the pool of that loop."""
    try:
        yield
    finally:
        await _close(pool)


async def _leave(_connection: Any) -> None:
    return None


async def _close(pool: Any) -> None:
    try:
        await asyncio.wait_for(pool.close(), 5)
    except (TimeoutError, *FAULTS):
        pool.terminate()


@asynccontextmanager
async def _transaction(conn: Conn, **how: Any) -> AsyncGenerator[None]:
    raw: Any = conn.raw
    async with raw.transaction(**how):
        yield
