"""Opening: checks that the server exists, accepts writes and is ours, and whether there is a pooler; migrates
the schema."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import HoldfastError, SettingsError, StoreUnavailableError
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.dialect import PostgresConn
from holdfast.store.sql.postgres.errors import DRIVER_ERRORS, translated
from holdfast.store.sql.postgres.failover import FailoverCheck
from holdfast.store.sql.postgres.migrate import OLDEST_SERVER, bring_up
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.server_clock import ServerClock

_FACTS = """
SELECT pg_backend_pid(), current_setting('server_version_num')::int, pg_is_in_recovery(),
       current_setting('transaction_read_only') = 'on',
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"""


class OpenResult(msgspec.Struct, frozen=True):
    pooled: bool


async def prepare(servers: PostgresServers, clock: ServerClock, arrivals: FailoverCheck) -> OpenResult:
    """Create or migrate the schema. Raises SettingsError, NotAStoreError, SchemaTooNewError and
    StoreUnavailableError; then the database was not changed."""
    settings = servers.settings
    try:
        raw = await servers.connect(pooled=True)
        try:
            found = await _prepare(settings, clock, raw)
            await arrivals.note(PostgresConn(raw, settings.schema))
            return found
        finally:
            await raw.close(timeout=settings.timeout)
    except HoldfastError:
        raise
    except (*DRIVER_ERRORS, ValueError) as error:
        raise translated(error, settings.shown) from error


async def _prepare(settings: PostgresSettings, clock: ServerClock, raw: Any) -> OpenResult:
    conn = PostgresConn(raw, settings.schema)
    heard = clock.asking()
    facts = await conn.row(_FACTS)
    assert facts is not None
    pid, version, standby, read_only, now = facts
    heard(now)
    if version < OLDEST_SERVER:
        raise StoreUnavailableError(
            f"the server at {settings.shown} is PostgreSQL {version // 10000}; Holdfast needs 15 or newer.",
            hint="Update the server.",
        )
    if standby or read_only:
        raise StoreUnavailableError(
            f"the server at {settings.shown} is a replica, or its transactions are read-only.",
            hint="Give the address of the primary, or all servers of the cluster.",
        )
    # A pooler invents a process id for each connection.
    between = pid != raw.get_server_pid()
    if between:
        await _require_transactions(settings, raw)
    await bring_up(settings, conn)
    return OpenResult(settings.pooled == "yes" or (settings.pooled is None and between))


async def _require_transactions(settings: PostgresSettings, raw: Any) -> None:
    """A pooler that gives out a connection for one statement breaks every write that has several."""
    try:
        async with raw.transaction():
            await raw.execute("SELECT 1")
    except DRIVER_ERRORS as error:
        if "statement pooling" not in str(error):
            raise
        raise SettingsError(
            f"the pooler at {settings.shown} pools statements, but Holdfast writes in transactions.",
            hint="Set pool_mode = transaction (or session) for this database in the pooler.",
        ) from error
