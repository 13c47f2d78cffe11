"""An upgrade as an operator sees it: what is to be done, and which sessions prevent it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from holdfast.errors import HoldfastError
from holdfast.store.sql.postgres import migrate
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.errors import DRIVER_ERRORS, translated
from holdfast.store.sql.postgres.older_sessions import older_sessions, unregistered_workers
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.upgrade import Upgrade, UpgradeStep


async def read_upgrade(settings: PostgresSettings) -> Upgrade:
    async with _connected(settings) as conn:
        return await _read_upgrade(settings, conn)


async def finish_upgrade(settings: PostgresSettings) -> Upgrade:
    async with _connected(settings) as conn:
        await migrate.finish(settings, conn)
        return await _read_upgrade(settings, conn)


async def _read_upgrade(settings: PostgresSettings, conn: PostgresConnection) -> Upgrade:
    now = await migrate.migration_state(conn, settings.shown)
    known = migrate.migrations()
    older = await older_sessions(conn, max(now.begun)) if now.begun else []
    if now.begun and now.expanded >= known[-1].number:
        older += [f"{worker}, which is not registered" for worker in await unregistered_workers(conn, None)]
    return Upgrade(
        shared=True,
        number=now.number,
        to_begin=[UpgradeStep(m.number, m.name, m.sql) for m in known if m.number > now.expanded],
        to_finish=[UpgradeStep(m.number, m.name, m.post) for m in known if m.number in now.begun],
        older=older,
    )


@asynccontextmanager
async def _connected(settings: PostgresSettings) -> AsyncGenerator[PostgresConnection]:
    try:
        raw = await PostgresServers(settings).connect(pooled=True)
        try:
            yield PostgresConnection(raw, settings.schema)
        finally:
            await raw.close(timeout=settings.timeout)
    except HoldfastError:
        raise
    except (*DRIVER_ERRORS, ValueError) as error:
        raise translated(error, settings.shown) from error
