"""The connection over which the heartbeats of a MariaDB store go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.store.sql.heartbeat_thread import HeartbeatThread
from holdfast.store.sql.mariadb import claim
from holdfast.store.sql.mariadb.address import MariadbSettings
from holdfast.store.sql.mariadb.connect import MariadbConnection
from holdfast.store.sql.mariadb.errors import DRIVER_ERRORS, closed, translated
from holdfast.store.sql.mariadb.failover import PrimaryCheck
from holdfast.store.sql.mariadb.session import drop, leave
from holdfast.store.sql.server_clock import ServerClock
from holdfast.types.lease import Lease


class MariadbHeartbeat(HeartbeatThread):
    driver_errors = DRIVER_ERRORS

    def __init__(self, settings: MariadbSettings, clock: ServerClock, primary: PrimaryCheck) -> None:
        super().__init__(clock, settings.timeout)
        self._settings = settings
        self._primary = primary
        self._generation = 0

    async def _connect(self) -> Any:
        raw, self._generation = await self._primary.connect()
        return raw

    async def _say(self, raw: Any, leases: Sequence[Lease], ttl: int) -> list[bool]:
        heard = self._clock.asking()
        conn = MariadbConnection(raw)
        await conn.send("BEGIN")
        now, extended = await claim.extend(conn, self._clock.given, leases, ttl)
        if now is not None:
            heard(now)
        await conn.send("COMMIT")
        return extended

    async def _leave(self, raw: Any) -> None:
        await leave(raw)

    def _give_up(self, raw: Any) -> None:
        drop(raw)

    def _translated(self, error: BaseException) -> HoldfastError:
        return translated(error, self._settings.shown)

    def _closed_error(self) -> HoldfastError:
        return closed(self._settings.shown)

    def _is_usable(self, raw: Any) -> bool:
        return self._generation == self._primary.generation

    def _doubt(self) -> None:
        """There is one address: the next connection shows who is there."""
