"""Opening: checks that the server is one that the store can use; creates or migrates the tables."""

from __future__ import annotations

import re

import msgspec

from holdfast.errors import HoldfastError, StoreUnavailableError
from holdfast.store.sql.mariadb.address import MariadbSettings
from holdfast.store.sql.mariadb.connect import MariadbConnection
from holdfast.store.sql.mariadb.errors import DRIVER_ERRORS, translated
from holdfast.store.sql.mariadb.migrate import bring_up
from holdfast.store.sql.mariadb.session import connect, leave
from holdfast.store.sql.server_clock import ServerClock

OLDEST_SERVER = (10, 11)
_FACTS = "SELECT version(), @@global.read_only, @@max_allowed_packet, @now(NULL)"
_VERSION = re.compile(r"(\d+)\.(\d+)")


class ServerFacts(msgspec.Struct, frozen=True):
    packet: int  # the server's max_allowed_packet


async def prepare(settings: MariadbSettings, clock: ServerClock) -> ServerFacts:
    """Create or migrate the tables. Raises NotAStoreError, SchemaTooNewError and StoreUnavailableError; then
    the database was not changed."""
    try:
        raw = await connect(settings)
        try:
            return await _prepare(settings, clock, MariadbConnection(raw))
        finally:
            await leave(raw)
    except HoldfastError:
        raise
    except DRIVER_ERRORS as error:
        raise translated(error, settings.shown) from error


async def _prepare(settings: MariadbSettings, clock: ServerClock, conn: MariadbConnection) -> ServerFacts:
    heard = clock.asking()
    facts = await conn.row(_FACTS)
    assert facts is not None
    version, read_only, packet, now = facts
    heard(now)
    found = _VERSION.search(version)
    if "mariadb" not in version.lower() or found is None or (int(found[1]), int(found[2])) < OLDEST_SERVER:
        raise StoreUnavailableError(
            f"the server at {settings.shown} is {version}; Holdfast needs MariaDB 10.11 or newer.",
            hint="Update the server, or use PostgreSQL.",
        )
    # From 12 on it is a word: OFF, READ_ONLY, ...
    if str(read_only).upper() not in ("0", "OFF"):
        raise StoreUnavailableError(
            f"the server at {settings.shown} is read-only: it is a replica.",
            hint="Give the address of the primary.",
        )
    await bring_up(conn, settings.shown)
    return ServerFacts(int(packet))
