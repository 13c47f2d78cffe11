"""Heartbeats from a thread: with its own loop and connection, so that a busy loop does not lose leases."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from holdfast.store.sql.mariadb import claim
from holdfast.store.sql.mariadb.address import MariadbSettings
from holdfast.store.sql.mariadb.connect import MariadbConnection
from holdfast.store.sql.mariadb.errors import DRIVER_ERRORS, closed, translated
from holdfast.store.sql.mariadb.session import connect, drop, leave
from holdfast.store.sql.server_clock import ServerClock
from holdfast.types.lease import Lease


class MariadbHeartbeat:
    def __init__(self, settings: MariadbSettings, clock: ServerClock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._runner: asyncio.Runner | None = None
        self._raw: Any = None
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
        """A heartbeat cannot wait: a connection that does not answer is given up, and another one is opened
        at once (extending a lease twice does no harm)."""
        try:
            return await self._extend(leases, ttl)
        except DRIVER_ERRORS:
            self._drop()
        try:
            return await self._extend(leases, ttl)
        except BaseException:
            self._drop()
            raise

    async def _extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        if self._raw is None:
            self._raw = await connect(self._settings)
        # At most the time between two heartbeats: a longer wait would use up the lease that it is to extend.
        async with asyncio.timeout(min(self._settings.timeout, max(0.5, ttl / 3e6))):
            heard = self._clock.asking()
            conn = MariadbConnection(self._raw)
            await conn.send("BEGIN")
            now, extended = await claim.extend(conn, self._clock.given, leases, ttl)
            if now is not None:
                heard(now)
            await conn.send("COMMIT")
            return extended

    def _drop(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            drop(raw)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            runner, self._runner = self._runner, None
            if runner is None:
                return
            if self._raw is not None:
                runner.run(leave(self._raw))
                self._raw = None
            runner.close()

    def abandon(self) -> None:
        """In a forked child: thread, loop and connection belong to the parent."""
        self._closed = True
        self._lock = threading.Lock()
        _inherited.append((self._runner, self._raw))
        self._runner = self._raw = None


_inherited: list[Any] = []
