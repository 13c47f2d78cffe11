"""The connections of a PostgreSQL store: one is kept for the next caller, and none is left behind."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from holdfast.errors import StoreUnavailableError
from holdfast.store.open import open_store
from holdfast.store.sql.postgres.pool import SpareConnection
from holdfast.store.sql.postgres.store import PostgresStore
from tests.deadlines import HANG
from tests.services import postgres
from tests.services.postgres import with_setting

pytestmark = pytest.mark.anyio

_driver: Any = asyncpg

SLOW_COMMIT = (
    "CREATE TEMPORARY TABLE slow (a int)",
    (
        "CREATE FUNCTION pg_temp.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_sleep(60); RETURN NULL; END $$"
    ),
    (
        "CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION pg_temp.wait()"
    ),
    "INSERT INTO slow VALUES (1)",
)


async def _backend(store: PostgresStore) -> int:
    async def pid(conn: Any) -> int:
        return (await conn.row("SELECT pg_backend_pid()"))[0]

    return await store._pools.read(pid)  # pyright: ignore[reportPrivateUsage]


async def _is_there(pid: int) -> bool:
    connection = await _driver.connect(postgres.database())
    try:
        return bool(await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid))
    finally:
        await connection.close()


async def test_callers_one_after_the_other_use_one_connection(address: str) -> None:
    store = await open_store(address)
    assert isinstance(store, PostgresStore)
    assert len({await _backend(store) for _ in range(5)}) == 1
    await store.close()


async def test_callers_at_once_have_a_connection_each_and_the_store_closes_all(address: str) -> None:
    store = await open_store(address)
    assert isinstance(store, PostgresStore)
    found = set(await asyncio.gather(*(_backend(store) for _ in range(3))))
    assert len(found) == 3
    await store.close()
    assert not [pid for pid in found if await _is_there(pid)]


async def test_connection_that_the_server_closed_is_replaced(address: str) -> None:
    store = await open_store(address)
    assert isinstance(store, PostgresStore)
    before = await _backend(store)
    connection = await _driver.connect(postgres.database())
    await connection.execute("SELECT pg_terminate_backend($1, 5000)", before)
    await connection.close()
    assert await _backend(store) != before
    await store.close()


async def test_next_caller_has_a_connection_of_its_own_when_a_commit_had_no_answer_in_time(
    address: str,
) -> None:
    """The commit that was cut off ends only when the server has cancelled it."""
    store = await open_store(with_setting(address, statement_timeout="1"))
    assert isinstance(store, PostgresStore)
    pools = store._pools  # pyright: ignore[reportPrivateUsage]

    async def slow_commit(conn: Any) -> None:
        for statement in SLOW_COMMIT:
            await conn.raw.execute(statement)

    async def quick(conn: Any) -> int:
        return (await conn.row("SELECT 1"))[0]

    with pytest.raises(StoreUnavailableError, match="too long"):
        await pools.write(slow_commit)
    assert await pools.write(quick) == 1
    await store.close()


async def test_connection_that_listens_ends_with_its_loop_when_the_store_stays_open(address: str) -> None:
    store = await open_store(address)
    assert isinstance(store, PostgresStore)

    async def listens() -> Any:
        await store.wait_change(0.0)
        return store._listener._connection  # pyright: ignore[reportPrivateUsage]

    connection = await asyncio.to_thread(asyncio.run, listens())
    assert connection.is_closed()
    await store.close()


async def test_connection_goes_back_to_the_pool_when_it_is_not_used_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.store.sql.postgres.pool._UNUSED", 0.001)
    returned: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    class Pool:
        async def release(self, raw: Any) -> None:
            returned.set_result(raw)

    class Raw:
        def is_closed(self) -> bool:
            return False

    spare = SpareConnection(asyncio.get_running_loop(), Pool())
    raw = Raw()
    assert spare.keep(raw)
    assert not spare.keep(Raw()), "only one is kept"
    assert spare.take() is raw
    assert spare.take() is None
    assert spare.keep(raw)
    assert await asyncio.wait_for(returned, HANG) is raw
    assert spare.take() is None
