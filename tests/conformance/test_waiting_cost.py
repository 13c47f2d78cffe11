"""What an action reads in a store where many runs wait: counted by the database, never timed. With a million
of them, and timed, in `tests/soak/test_soak_waiting.py`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Holdfast
from holdfast.holds.queries.audit import verify_audit
from holdfast.store.sql.mariadb.pool import LoopPool
from tests.services import mariadb, postgres
from tests.soak.waiting_costs import WaitingRuns
from tests.waiting_runs import TENANT, fill_mariadb, fill_postgres, fill_sqlite, refund

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SC2-5")]

FEW, MANY = 300, 3_000
Count = Callable[[], Awaitable[int]]
"""How much was read since it was called last."""
Opened = AbstractAsyncContextManager[tuple[WaitingRuns, Holdfast, Count]]


# ---------------------------------------------------------------------- SQLite


@asynccontextmanager
async def on_sqlite(count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Steps of SQLite's machine, of all connections that the store opens."""
    file = folder / f"{count}.db"
    parked = await fill_sqlite(str(file), count, refund())
    db = apsw.Connection(str(file))
    db.set_busy_timeout(60_000)
    steps = 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        return False

    async def counted() -> int:
        nonlocal steps
        found, steps = steps, 0
        return found

    async def set_due(key: int) -> None:
        db.execute("UPDATE timers SET fire_at = 0 WHERE run_key = ?", (key,))

    hooks = [*apsw.connection_hooks, lambda conn: conn.set_progress_handler(step, 1)]
    monkeypatch.setattr(apsw, "connection_hooks", hooks)
    async with Holdfast(f"sqlite:{file}") as hf:
        yield WaitingRuns(hf, parked, count, set_due), hf, counted
    db.close()


# ---------------------------------------------------------------------- PostgreSQL

_READ = """
SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = $1)
     + (SELECT sum(idx_tup_read + idx_tup_fetch) FROM pg_stat_user_indexes WHERE schemaname = $1)"""
# The server plans as if there were so many: with few rows it reads tables whole, and rightly.
_PRETEND = """
UPDATE pg_class SET reltuples = reltuples * {times} WHERE relnamespace = '{schema}'::regnamespace"""
_NO_VACUUM = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' LOOP
        EXECUTE format('ALTER TABLE {schema}.%I SET (autovacuum_enabled = off)', name);
    END LOOP;
END $$"""


@asynccontextmanager
async def on_postgres(count: int, _folder: Path, _monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Rows of tables and entries of indexes. The store has one connection, which tells the server at once
    what it read."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    driver: Any = asyncpg
    schema = f"waiting_{secrets.token_hex(4)}"
    parked = await fill_postgres(postgres.database(), schema, count, refund())
    conn = await driver.connect(postgres.database(), server_settings={"search_path": schema})
    await conn.execute(_NO_VACUUM.format(schema=schema))
    await conn.execute(_PRETEND.format(schema=schema, times=300))
    before = 0

    async def set_due(key: int) -> None:
        await conn.execute("UPDATE timers SET fire_at = 0 WHERE run_key = $1", key)
        await counted()

    async def counted() -> int:
        nonlocal before
        store: Any = await hf.open()
        await store._pools.read(lambda each: each.raw.execute("SELECT pg_stat_force_next_flush()"))
        await conn.execute("SELECT pg_stat_force_next_flush()")
        now = int(await conn.fetchval(_READ, schema))
        found, before = now - before, now
        return found

    async with Holdfast(postgres.with_setting(postgres.database(), schema=schema, pool="1")) as hf:
        yield WaitingRuns(hf, parked, count, set_due), hf, counted
    await conn.execute(f"DROP SCHEMA {schema} CASCADE")
    await conn.close()


# ---------------------------------------------------------------------- MariaDB

_READS = "SHOW SESSION STATUS LIKE 'Handler_read%'"


@asynccontextmanager
async def on_mariadb(count: int, _folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Rows that a connection asked the tables for, between taking it and giving it back."""
    address = mariadb.database(f"waiting {count}")
    await mariadb.empty(address)
    parked = await fill_mariadb(address, count, refund())
    reads = 0
    plain = LoopPool.connection

    async def told(conn: Any) -> int:
        return sum(int(number) for _, number in await conn.rows(_READS))

    @asynccontextmanager
    async def counting(pool: LoopPool) -> AsyncGenerator[Any]:
        nonlocal reads
        async with plain(pool) as conn:
            before = await told(conn)
            yield conn
            reads += await told(conn) - before

    async def counted() -> int:
        nonlocal reads
        found, reads = reads, 0
        return found

    async def set_due(key: int) -> None:
        sql = f"UPDATE timers SET fire_at = 0 WHERE run_key = {key}"
        await asyncio.to_thread(mariadb.execute, sql, address)

    monkeypatch.setattr(LoopPool, "connection", counting)
    async with Holdfast(address) as hf:
        yield WaitingRuns(hf, parked, count, set_due), hf, counted


STORES: dict[str, Callable[[int, Path, pytest.MonkeyPatch], Opened]] = {
    "sqlite": on_sqlite,
    "postgres": on_postgres,
    "mariadb": on_mariadb,
}


@pytest.mark.parametrize("store", STORES)
async def test_actions_read_no_more_when_ten_times_as_many_runs_wait(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = [await _reads(STORES[store](count, tmp_path, monkeypatch)) for count in (FEW, MANY)]
    assert {name: many[name] for name in few if many[name] > 1.3 * few[name] + 60} == {}


async def _reads(opened: Opened) -> dict[str, int]:
    """By action, the second time: the first also fills caches."""
    async with opened as (runs, hf, count):
        found: dict[str, int] = {}
        for name, act in runs.acts.items():
            await act()
            await count()
            await act()
            found[name] = await count()
        store = (await hf.service()).store
        assert (await verify_audit(store, TENANT)).whole
    return found
