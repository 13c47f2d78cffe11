"""The servers that an address names, and which of them accepts writes.

A failover makes a new timeline: a number that grows when a standby is promoted. Of two servers that both
accept writes, the one with the lower number is an old primary that came back. Nothing is written to it: each
new connection is asked for its timeline and its cluster before it is used.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from holdfast.errors import StoreUnavailableError
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.errors import DRIVER_ERRORS
from holdfast.store.sql.postgres.session import (
    NoPrimaryError,
    PostgresServer,
    PostgresSession,
    ServerIdentity,
    connect,
    no_primary_error,
    old_primary_error,
    other_cluster_error,
    servers_of,
)
from holdfast.telemetry import log

_AWHILE: Final = 2.0  # seconds to wait for the answers of the others when one accepts writes
_KNOCKS: Final = 2  # failed checks until a primary that was not replaced is given up
_AGAIN: Final = 0.2  # seconds until all are asked again while none accepts writes


class PostgresServers:
    """Shared by all connections of a store, on every loop and thread. `timeline`: the highest seen."""

    def __init__(self, settings: PostgresSettings) -> None:
        self.settings = settings
        self.all = servers_of(settings)
        self.timeline = 0
        self.system: int | None = None
        self.pooled = False
        self._favourite = self.all[0]
        self._sure = False
        self._lock = threading.Lock()
        self._refused: set[tuple[str, int]] = set()
        self._leavers: list[Callable[[PostgresServer | None], None]] = []
        self._looking = False
        self._looked_at = time.monotonic()
        self._unanswered = 0

    # ------------------------------------------------------------------ connecting
    async def connect(self, *_: Any, pooled: bool, **_more: Any) -> Any:
        """A connection to the primary. Raises the driver's errors, and StoreUnavailableError if the only
        server that accepts writes must not get them."""
        if len(self.all) == 1:
            return self._admitted(await self._asked(self.all[0], pooled=pooled))
        if self._sure:
            # The others were asked when this one was found, and are asked again regularly.
            with suppress(StoreUnavailableError, *DRIVER_ERRORS):
                async with asyncio.timeout(self.settings.timeout / 3):
                    return self._admitted(await self._asked(self._favourite, pooled=pooled))
            self.doubt()
        deadline = time.monotonic() + self.settings.timeout / 2
        while True:
            try:
                return self._admitted(await self._best(pooled=pooled))
            except NoPrimaryError:
                # They answer: a failover is in progress, and nothing was sent yet that could be lost.
                if time.monotonic() + _AGAIN > deadline:
                    raise
                await asyncio.sleep(_AGAIN)

    async def _best(self, *, pooled: bool) -> Any:
        """All are asked at once; of those that accept writes, the one with the highest timeline is chosen."""
        asking = [asyncio.create_task(self._asked(server, pooled=pooled)) for server in self.all]
        best: Any = None
        try:
            waiting: set[asyncio.Task[Any]] = set(asking)
            until = time.monotonic() + self.settings.timeout
            while waiting and (left := until - time.monotonic()) > 0:
                _, waiting = await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if _writers(asking):
                    until = min(until, time.monotonic() + min(_AWHILE, self.settings.timeout / 4))
            best = self._chosen(asking)
            return best
        finally:
            for task in asking:
                task.cancel()
            for found in await asyncio.gather(*asking, return_exceptions=True):
                if isinstance(found, PostgresSession) and found is not best:
                    found.terminate()

    def _chosen(self, asked: list[asyncio.Task[Any]]) -> Any:
        found = _writers(asked)
        if not found:
            raise _connect_error(asked)
        best = max(found, key=lambda session: session.who.timeline)
        for session in found:
            if session.who.system != best.who.system:
                raise other_cluster_error(session.who, best.who.system)
            if session.who.timeline < best.who.timeline:
                self._log_old_primary(session.who, best.who.timeline)
        self._favourite, self._sure = best.who.server, True
        return best

    async def _asked(self, server: PostgresServer, *, pooled: bool) -> Any:
        return await connect(server, self.settings, pooled=pooled)

    # ------------------------------------------------------------------ who may be written to
    def _admitted(self, session: Any) -> Any:
        try:
            self.admit(session.who)
        except BaseException:
            session.terminate()
            raise
        return session

    def admit(self, who: ServerIdentity) -> None:
        """Raises StoreUnavailableError for an old primary and for a server of another cluster."""
        if who.reads_only:
            raise no_primary_error()
        with self._lock:
            if self.system is not None and who.system != self.system:
                raise other_cluster_error(who, self.system)
            seen = self.timeline
            if who.timeline >= seen:
                self.system, self.timeline = who.system, who.timeline
        if who.timeline < seen:
            self._log_old_primary(who, seen)
            raise old_primary_error(who, seen)
        if 0 < seen < who.timeline:
            text = "the primary is now %s, on timeline %d (before: %d)"
            log.warning(text, who.server.name, who.timeline, seen)
            self._leave(None)

    def is_current(self, session: Any) -> bool:
        """Whether it is connected to the newest primary that this process has seen."""
        return session.who.timeline == self.timeline

    def doubt(self) -> None:
        """A connection was lost: the next one asks all servers again."""
        self._sure = False

    def _log_old_primary(self, who: ServerIdentity, seen: int) -> None:
        """Logged once for each server and failover."""
        if (who.server.name, seen) not in self._refused:
            self._refused.add((who.server.name, seen))
            text = "%s accepts writes on timeline %d, but %d was seen: an old primary, not written to"
            log.error(text, who.server.name, who.timeline, seen)

    # ------------------------------------------------------------------ looking round
    def on_leaving(self, leave: Callable[[PostgresServer | None], None]) -> None:
        """`leave` is called, from any thread, when connections to that server must be closed (None: all that
        are not current)."""
        self._leavers.append(leave)

    def _leave(self, server: PostgresServer | None) -> None:
        for leave in list(self._leavers):
            leave(server)

    def due(self) -> bool:
        """Whether it is time to check whether another server became the primary."""
        return (
            len(self.all) > 1
            and not self._looking
            and time.monotonic() - self._looked_at > self.settings.look
        )

    async def look(self, *, silent: bool = False) -> None:
        """Ask the other servers whether one of them is a newer primary. `silent`: a statement has had no
        answer for a while; then the primary is asked too, and given up if it does not answer a new
        connection."""
        if self._looking:
            return
        self._looking = True
        try:
            primary = self._favourite
            asked = self.all if silent else [server for server in self.all if server != primary]
            answers = await asyncio.gather(*map(self._answers, asked))
            if silent:
                self._judge(primary, answered=dict(zip(asked, answers, strict=True))[primary])
        finally:
            self._looked_at, self._looking = time.monotonic(), False

    def _judge(self, primary: PostgresServer, *, answered: bool) -> None:
        """A slow server is not given up at once: its running calls would be repeated. Behind a pooler, which
        keeps new connections waiting while it is busy, none is given up."""
        self._unanswered = 0 if answered else self._unanswered + 1
        replaced = self._favourite != primary
        if not answered and not self.pooled and (replaced or self._unanswered >= _KNOCKS):
            log.warning("%s does not answer any more; its connections are given up", primary.name)
            self._unanswered = 0
            if not replaced:
                self.doubt()
            self._leave(primary)

    async def _answers(self, server: PostgresServer) -> bool:
        """Whether it answered at all. A newer primary is admitted, and all others are left."""
        try:
            async with asyncio.timeout(min(self.settings.timeout, self.settings.look)):
                session = await self._asked(server, pooled=True)
        except (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError):  # also TimeoutError
            return False  # or a pooler before it that has no server
        except DRIVER_ERRORS:
            return True
        who = session.who
        session.terminate()
        if who.timeline > self.timeline and not who.reads_only and who.system == self.system:
            self._favourite, self._sure = server, True
            self.admit(who)
        return True


def _writers(asked: Iterable[asyncio.Task[Any]]) -> list[Any]:
    answered = [task.result() for task in asked if task.done() and task.exception() is None]
    return [session for session in answered if not session.who.reads_only]


def _connect_error(asked: list[asyncio.Task[Any]]) -> BaseException:
    """An error that an operator can fix is preferred to a server that does not answer."""
    errors = [task.exception() for task in asked if task.done()]
    if any(error is None or isinstance(error, asyncpg.CannotConnectNowError) for error in errors):
        return no_primary_error()
    lines = [error for error in errors if error is not None]
    return next(
        (error for error in lines if not isinstance(error, OSError)), next(iter(lines), TimeoutError())
    )
