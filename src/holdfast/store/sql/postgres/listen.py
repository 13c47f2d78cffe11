"""Waking workers: at once by NOTIFY, or by polling if there are no notifications (D-11).

LISTEN needs a session, which a pooling proxy does not give. With one, and while the connection is lost, the
store polls a few numbers that grow with everything that could concern a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import Context
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.store.sql.change_poller import ChangePoller
from holdfast.store.sql.postgres.connect import PostgresConnection, Row
from holdfast.store.sql.postgres.errors import DRIVER_ERRORS
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.postgres.session import PostgresServer
from holdfast.telemetry import log

NOTIFY = "SELECT pg_notify(?, '')"
LATEST_IDS = """
SELECT (SELECT max(key) FROM @runs), (SELECT max(id) FROM @inbox), (SELECT max(id) FROM @outbox),
       (SELECT min(ready_at) FROM @runs WHERE worker IS NULL AND ready_at IS NOT NULL),
       (SELECT count(*) FROM @runs WHERE worker IS NOT NULL AND gate <> '')"""

_RETRY = 2.0  # seconds until LISTEN is tried again


def channel(schema: str) -> str:
    return f"holdfast_{schema}"


class PostgresListener(ChangePoller):
    def __init__(
        self, servers: PostgresServers, look: Callable[[], Awaitable[Row | None]], *, pooled: bool
    ) -> None:
        super().__init__(servers.settings.poll, look)
        self._settings = servers.settings
        self._servers = servers
        self._pooled = pooled
        self._connection: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kept: AsyncGenerator[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closed = False
        self._retry_at = 0.0
        self._heard_at = 0.0
        servers.on_leaving(self._leave)

    async def wait(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        if await self._listens():
            return await self._changes.wait(timeout)
        return await super().wait(deadline - time.monotonic())

    async def _listens(self) -> bool:
        """Whether a connection is listening, on any loop."""
        if self._pooled or self._closed:
            return False
        if self._is_alive() and await self._answers():
            return True
        if time.monotonic() < self._retry_at:
            return False
        self._retry_at = time.monotonic() + _RETRY
        self._starting = asyncio.get_running_loop().create_task(self._start(), context=Context())
        try:
            await asyncio.shield(self._starting)
        except (HoldfastError, *DRIVER_ERRORS) as error:
            log.warning("cannot listen for changes, polling instead: %s", error)
            return False
        return True

    def _is_alive(self) -> bool:
        return (
            self._connection is not None
            and self._loop is not None
            and not self._loop.is_closed()
            and not self._connection.is_closed()
        )

    async def _answers(self) -> bool:
        """Asks the server: a connection that only listens would never notice that its server is gone."""
        loop, connection = self._loop, self._connection
        if time.monotonic() - self._heard_at < self._settings.look:
            return True
        if loop is not asyncio.get_running_loop():
            return True  # its own loop handles it
        self._heard_at = time.monotonic()
        try:
            async with asyncio.timeout(min(self._settings.timeout, self._settings.look)):
                await connection.fetch("SELECT 1")
        except DRIVER_ERRORS:
            self._servers.doubt()
            connection.terminate()
            return False
        return True

    def _leave(self, server: PostgresServer | None) -> None:
        loop, connection = self._loop, self._connection
        if loop is None or connection is None:
            return
        left = not self._servers.is_current(connection) if server is None else connection.who.server == server
        if left:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                loop.call_soon_threadsafe(connection.terminate)

    async def _start(self) -> None:
        connection = await self._servers.connect(pooled=True)
        try:
            await connection.add_listener(channel(self._settings.schema), self._on_notification)
        except BaseException:
            connection.terminate()
            raise
        if self._closed:
            connection.terminate()
            return
        connection.add_termination_listener(self._ended)
        self._connection, self._loop = connection, asyncio.get_running_loop()
        self._kept = _terminate_with_loop(connection)
        await anext(self._kept)
        self._heard_at = time.monotonic()
        # Earlier notifications were not received.
        self._changes.notify()

    def _on_notification(self, *_: Any) -> None:
        self._changes.notify()

    def _ended(self, *_: Any) -> None:
        self._retry_at = 0.0
        self._changes.notify()

    async def close(self) -> None:
        self._closed = True
        starting = self._starting
        if starting is not None and starting.get_loop() is asyncio.get_running_loop():
            await asyncio.wait({starting})
        connection, self._connection = self._connection, None
        if connection is None or connection.is_closed():
            return
        if self._loop is asyncio.get_running_loop():
            with contextlib.suppress(*DRIVER_ERRORS):
                await connection.close(timeout=2)
            if self._kept is not None:
                await self._kept.aclose()
        elif self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(connection.terminate)


async def _terminate_with_loop(connection: Any) -> AsyncGenerator[None]:
    """For a loop that ends before the store, such as that of `Flow.run_sync`: `asyncio.run` closes async
    generators that are left, and with it the connection of that loop."""
    try:
        yield
    finally:
        connection.terminate()


async def notify(conn: PostgresConnection) -> None:
    await conn.run(NOTIFY, channel(conn.schema))
