"""Heartbeats from a thread: with its own loop and connection, so that a busy loop does not lose leases."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from typing import Any

from holdfast.store.sql.postgres import claim
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.errors import DRIVER_ERRORS, closed, translated
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.server_clock import ServerClock
from holdfast.types.lease import Lease


class HeartbeatThread:
    def __init__(self, servers: PostgresServers, clock: ServerClock, *, pooled: bool) -> None:
        self._settings = servers.settings
        self._servers = servers
        self._clock = clock
        self._pooled = pooled
        self._lock = threading.Lock()
        self._runner: asyncio.Runner | None = None
        self._connection: Any = None
        self._closed = False

    def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """Blocks the calling thread, in which no event loop runs."""
        with self._lock:
            if self._closed:
                raise closed(self._settings.shown)
            if self._runner is None:
                self._runner = asyncio.Runner()
            try:
                return self._runner.run(self._again(leases, ttl))
            except DRIVER_ERRORS as error:
                raise translated(error, self._settings.shown) from error

    async def _again(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """A heartbeat cannot wait: a server that does not answer is given up, and the next one is asked at
        once (extending a lease twice does no harm)."""
        try:
            return await self._extend(leases, ttl)
        except DRIVER_ERRORS:
            self._servers.doubt()
            self._drop()
        try:
            return await self._extend(leases, ttl)
        except BaseException:
            self._drop()
            raise

    async def _extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        if self._connection is not None and not self._servers.is_current(self._connection):
            self._drop()
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._servers.connect(pooled=self._pooled)
        # At most the time between two heartbeats: a longer wait would use up the lease that it is to extend.
        async with asyncio.timeout(min(self._settings.timeout, max(0.5, ttl / 3e6))):
            return await self._say(leases, ttl)

    async def _say(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        heard = self._clock.asking()
        conn = PostgresConnection(self._connection, self._settings.schema)
        now, extended = await claim.extend(conn, self._clock.given, leases, ttl)
        heard(now)
        return extended

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            runner, self._runner = self._runner, None
            if runner is None:
                return
            if self._connection is not None:
                with contextlib.suppress(*DRIVER_ERRORS):
                    runner.run(self._connection.close(timeout=2))
                self._connection = None
            runner.close()

    def abandon(self) -> None:
        """In a forked child: thread, loop and connection belong to the parent."""
        self._closed = True
        self._lock = threading.Lock()
        _inherited.append((self._runner, self._connection))
        self._runner = self._connection = None


_inherited: list[Any] = []
