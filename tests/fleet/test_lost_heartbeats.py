"""Somebody is stopped in the middle of a transaction: nobody waits behind its locks for long."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from holdfast.errors import StoreError
from holdfast.store.open import open_store
from holdfast.store.sql.postgres import settings_for
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.copy import PostgresMoveEndpoint
from holdfast.types.concurrency_limits import LimitRow, flow_limit
from tests.deadlines import HANG
from tests.services import pgbouncer, postgres

pytestmark = pytest.mark.anyio


async def locks_are_freed(address: str) -> None:
    stopped = await open_store(postgres.with_setting(address, silence="0.5"))
    other = await open_store(address)
    locked, woken = asyncio.Event(), asyncio.Event()
    sessions: list[int] = []

    async def work(conn: PostgresConnection) -> None:
        await conn.run("LOCK TABLE @gates IN EXCLUSIVE MODE")
        ((session,),) = await conn.rows("SELECT pg_backend_pid()")
        sessions.append(session)
        locked.set()
        await woken.wait()
        await conn.run("SELECT 1")

    try:
        asleep = asyncio.create_task(stopped._pools.write(work))  # type: ignore[attr-defined]
        await locked.wait()
        async with asyncio.timeout(HANG):
            await other.put_limit(LimitRow(name=flow_limit("orders"), concurrency=1, fixed=True))
        alive = f"SELECT pid FROM pg_stat_activity WHERE pid = {sessions[0]}"
        assert postgres.execute(alive) == [], "it was locked until its holder was gone"
        woken.set()
        with pytest.raises(StoreError):
            await asleep
        assert await stopped.limits() != [], "the store goes on with another connection"
    finally:
        await stopped.close()
        await other.close()


@pytest.mark.covers("FLEET-WORK-03", "FLEET-PROOF-01")
async def test_locks_are_freed_when_their_holder_is_stopped_in_its_transaction(address: str) -> None:
    await locks_are_freed(address)


@pytest.mark.covers("FLEET-PROM-02")
async def test_fleet_goes_on_when_a_caller_who_moves_its_store_is_stopped_with_every_table_locked(
    address: str,
) -> None:
    store = await open_store(address)
    half = PostgresMoveEndpoint(settings_for(postgres.with_setting(address, silence="0.5"), {}, ""))
    locked, woken = asyncio.Event(), asyncio.Event()

    async def work(_conn: PostgresConnection) -> None:
        locked.set()
        await woken.wait()

    try:
        asleep = asyncio.create_task(half._line.alone(work))
        await locked.wait()
        async with asyncio.timeout(HANG):
            await store.put_limit(LimitRow(name=flow_limit("orders"), concurrency=1, fixed=True))
        woken.set()
        with pytest.raises(StoreError):
            await asleep
    finally:
        await half.close()
        await store.close()


@pytest.mark.covers("FLEET-WORK-03", "FLEET-PG-06")
async def test_locks_are_freed_when_their_holder_is_stopped_behind_a_pooler() -> None:
    with pgbouncer.pooler() as address:
        await locks_are_freed(postgres.with_setting(address, schema=f"t_{secrets.token_hex(4)}"))
