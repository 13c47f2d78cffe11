"""The connection over which the heartbeats of a PostgreSQL store go, always to the newest primary."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.store.sql.heartbeat_thread import HeartbeatThread
from holdfast.store.sql.postgres import claim
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.errors import DRIVER_ERRORS, closed, translated
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.server_clock import ServerClock
from holdfast.types.lease import Lease


class PostgresHeartbeat(HeartbeatThread):
    driver_errors = DRIVER_ERRORS

    def __init__(self, servers: PostgresServers, clock: ServerClock, *, pooled: bool) -> None:
        super().__init__(clock, servers.settings.timeout)
        self._settings = servers.settings
        self._servers = servers
        self._pooled = pooled

    async def _connect(self) -> Any:
        return await self._servers.connect(pooled=self._pooled)

    async def _say(self, raw: Any, leases: Sequence[Lease], ttl: int) -> list[bool]:
        heard = self._clock.asking()
        conn = PostgresConnection(raw, self._settings.schema)
        now, extended = await claim.extend(conn, self._clock.given, leases, ttl)
        heard(now)
        return extended

    async def _leave(self, raw: Any) -> None:
        with contextlib.suppress(*DRIVER_ERRORS):
            await raw.close(timeout=2)

    def _give_up(self, raw: Any) -> None:
        raw.terminate()

    def _translated(self, error: BaseException) -> HoldfastError:
        return translated(error, self._settings.shown)

    def _closed_error(self) -> HoldfastError:
        return closed(self._settings.shown)

    def _is_usable(self, raw: Any) -> bool:
        return self._servers.is_current(raw) and not raw.is_closed()

    def _doubt(self) -> None:
        self._servers.doubt()
