"""Opening: is it there, may we write, is it ours, is a pooler between; and the schema brought up to date."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import HoldfastError, StoreUnavailableError
from holdfast.store.sql.postgres.address import Settings
from holdfast.store.sql.postgres.clock import ServerClock
from holdfast.store.sql.postgres.connect import Conn
from holdfast.store.sql.postgres.faults import FAULTS, translated
from holdfast.store.sql.postgres.migrate import OLDEST_SERVER, migrate, migrations, schema_number
from holdfast.store.sql.postgres.pool import connect

_FACTS = """
SELECT pg_backend_pid(), current_setting('server_version_num')::int, pg_is_in_recovery(),
       current_setting('transaction_read_only') = 'on',
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"""


class Found(msgspec.Struct, frozen=True):
    pooled: bool


async def prepare(settings: Settings, clock: ServerClock) -> Found:
    """Create or migrate the schema. Raises SettingsError, NotAStoreError, SchemaTooNewError and
    StoreUnavailableError; the database is then as it was."""
    try:
        raw = await connect(settings, pooled=True)
        try:
            return await _prepare(settings, clock, raw)
        finally:
            await raw.close(timeout=settings.timeout)
    except HoldfastError:
        raise
    except (*FAULTS, ValueError) as error:
        raise translated(error, settings.shown) from error


async def _prepare(settings: Settings, clock: ServerClock, raw: Any) -> Found:
    conn = Conn(raw, settings.schema)
    heard = clock.asking()
    facts = await conn.row(_FACTS)
    assert facts is not None
    pid, version, standby, read_only, now = facts
    heard(now)
    if version < OLDEST_SERVER:
        raise StoreUnavailableError(
            f"The server at {settings.shown} is PostgreSQL {version // 10000}; Holdfast needs 15 or newer.",
            hint="Update the server.",
        )
    if standby or read_only:
        raise StoreUnavailableError(
            f"The server at {settings.shown} only reads: it is a replica, or its transactions are read-only.",
            hint="Give the address of the primary, or all servers of the cluster.",
        )
    if await schema_number(conn, settings.shown) != migrations()[-1].number:
        async with raw.transaction():
            await migrate(conn, settings.shown)
    # A pooler makes up a process of its own for whoever connects.
    pooled = settings.pooled == "yes" or (settings.pooled is None and pid != raw.get_server_pid())
    return Found(pooled)
