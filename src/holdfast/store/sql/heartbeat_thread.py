"""Heartbeats from a thread: with its own loop and connection, so that a busy loop does not lose leases."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from holdfast.errors import HoldfastError
from holdfast.store.sql.server_clock import ServerClock
from holdfast.types.lease import Lease


class HeartbeatThread(ABC):
    """Of a store on a server. What a dialect does with its driver is below `extend`."""

    driver_errors: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self, clock: ServerClock, timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout  # seconds
        self._lock = threading.Lock()
        self._runner: asyncio.Runner | None = None
        self._raw: Any = None
        self._closed = False

    def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """Blocks the calling thread, in which no event loop runs."""
        with self._lock:
            if self._closed:
                raise self._closed_error()
            if self._runner is None:
                self._runner = asyncio.Runner()
            try:
                return self._runner.run(self._again(leases, ttl))
            except self.driver_errors as error:
                raise self._translated(error) from error

    async def _again(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """A heartbeat cannot wait: a connection that does not answer is given up, and another one is opened
        at once (extending a lease twice does no harm)."""
        try:
            return await self._extend(leases, ttl)
        except self.driver_errors:
            self._doubt()
            self._drop()
        try:
            return await self._extend(leases, ttl)
        except BaseException:
            self._drop()
            raise

    async def _extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        if self._raw is not None and not self._is_usable(self._raw):
            self._drop()
        if self._raw is None:
            self._raw = await self._connect()
        # At most the time between two heartbeats: a longer wait would use up the lease that it is to extend.
        async with asyncio.timeout(min(self._timeout, max(0.5, ttl / 3e6))):
            return await self._say(self._raw, leases, ttl)

    def _drop(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            self._give_up(raw)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            runner, self._runner = self._runner, None
            if runner is None:
                return
            if self._raw is not None:
                runner.run(self._leave(self._raw))
                self._raw = None
            runner.close()

    def abandon(self) -> None:
        """In a forked child: thread, loop and connection belong to the parent."""
        self._closed = True
        self._lock = threading.Lock()
        _inherited.append((self._runner, self._raw))
        self._runner = self._raw = None

    # What a dialect does.

    @abstractmethod
    async def _connect(self) -> Any: ...

    @abstractmethod
    async def _say(self, raw: Any, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """Which leases were extended. The clock hears the server's time."""

    @abstractmethod
    async def _leave(self, raw: Any) -> None:
        """Ends the session. Raises nothing."""

    @abstractmethod
    def _give_up(self, raw: Any) -> None:
        """Closes without a word to the server."""

    @abstractmethod
    def _translated(self, error: BaseException) -> HoldfastError: ...

    @abstractmethod
    def _closed_error(self) -> HoldfastError: ...

    @abstractmethod
    def _is_usable(self, raw: Any) -> bool: ...

    @abstractmethod
    def _doubt(self) -> None:
        """The server did not answer: if there are several, it may not be the right one any more."""


_inherited: list[Any] = []  # never finalised: closing a connection would end the parent's
