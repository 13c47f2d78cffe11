"""One connection for somebody who moves a schema: calls come one at a time, some with every table locked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from holdfast.errors import HoldfastError
from holdfast.store.sql.postgres import write_barrier
from holdfast.store.sql.postgres.connect import Conn
from holdfast.store.sql.postgres.errors import AGAIN, FAULTS, translated
from holdfast.store.sql.postgres.servers import Servers
from holdfast.store.sql.postgres.session import hush

T = TypeVar("T")

_TRIES = 20
_PATIENCE = "SET LOCAL lock_timeout = '2s'"


class Line:
    """Connects when it is first used, and again where the connection is gone."""

    def __init__(self, servers: Servers) -> None:
        self._settings = servers.settings
        self._servers = servers
        self._raw: Any = None
        self._lock = asyncio.Lock()

    async def one(self, sql: str) -> Any:
        """The first value of the first row."""
        found = await self.read(lambda conn: conn.row(sql))
        return None if found is None else found[0]

    async def read(self, query: Callable[[Conn], Awaitable[T]]) -> T:
        async with self._lock:
            try:
                return await query(await self._connected())
            except HoldfastError:
                raise
            except (*FAULTS, ValueError) as error:
                raise translated(error, self._settings.shown) from error

    async def write(self, work: Callable[[Conn], Awaitable[T]]) -> T:
        async def transact(conn: Conn) -> T:
            raw: Any = conn.raw
            async with raw.transaction():
                await conn.run(hush(self._settings))
                return await work(conn)

        return await self.read(transact)

    async def alone(self, work: Callable[[Conn], Awaitable[T]]) -> T:
        """With every table locked against writers. Others are at work: it may take some tries."""

        async def locked(conn: Conn) -> T:
            raw: Any = conn.raw
            async with raw.transaction():
                await conn.run(_PATIENCE)
                # With all the locks there are: whoever stops here must not stop the whole fleet.
                await conn.run(hush(self._settings))
                await write_barrier.lock(conn)
                return await work(conn)

        async def trying(conn: Conn) -> T:
            left = _TRIES
            while True:
                left -= 1
                try:
                    return await locked(conn)
                except (asyncpg.LockNotAvailableError, *AGAIN):
                    if not left:
                        raise
                    await asyncio.sleep(0.1)

        return await self.read(trying)

    async def close(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            try:
                await raw.close(timeout=5)
            except FAULTS:
                raw.terminate()

    async def _connected(self) -> Conn:
        if self._raw is None or self._raw.is_closed():
            self._raw = await self._servers.connect(pooled=True)
        return Conn(self._raw, self._settings.schema)
