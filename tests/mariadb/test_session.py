"""Connections: the driver, what is set for each session, transactions that are repeated, calls cut off."""

from __future__ import annotations

import asyncio
import importlib.metadata
from typing import Any

import pytest

from holdfast.errors import SettingsError, StoreBusyError, StoreError, StoreUnavailableError
from holdfast.store.open import open_store
from holdfast.store.sql.acknowledgements import Acknowledgements
from holdfast.store.sql.mariadb import MariadbStore, settings_for
from holdfast.store.sql.mariadb.dialect import MariadbConn
from holdfast.store.sql.mariadb.failover import LOSSES, PrimaryCheck
from holdfast.store.sql.mariadb.pool import LoopPool, MariadbPools
from holdfast.store.sql.server_clock import ServerClock
from holdfast.types.document import Document
from tests.deadlines import HANG
from tests.services import absent, mariadb
from tests.services.mariadb_server import MariadbServer, programs

pytestmark = pytest.mark.anyio


def settings(address: str, **given: Any) -> Any:
    return settings_for(address, given, "")


async def primary_of(address: str) -> PrimaryCheck:
    await (await open_store(address)).close()
    return PrimaryCheck(settings(address), ServerClock(None), Acknowledgements(LOSSES))


async def pools_of(address: str) -> MariadbPools:
    return MariadbPools(settings(address), await primary_of(address))


@pytest.mark.covers("MB-1")
async def test_driver_is_asyncmy_and_an_extra_of_its_own(store: MariadbStore) -> None:
    assert importlib.metadata.version("asyncmy").startswith("0.2.")
    wanted = importlib.metadata.requires("asyncmy")
    assert wanted is None or not [each for each in wanted if "extra" not in each]
    assert (await store.examine(deep=False)).schema >= 2


@pytest.mark.covers("MB-2")
async def test_session_is_set_whatever_the_server_has(address: str) -> None:
    pools = await pools_of(address)
    found = await pools.read(
        lambda conn: conn.row(
            "SELECT @@tx_isolation, @@time_zone, @@innodb_lock_wait_timeout, @@sql_mode,"
            " @@collation_connection, @@idle_transaction_timeout, @@max_statement_time, @@sql_notes"
        )
    )
    await pools.close()
    assert found is not None
    assert found[:3] == ("READ-COMMITTED", "+00:00", 5)
    assert {"STRICT_ALL_TABLES", "PIPES_AS_CONCAT"} <= set(found[3].split(","))
    assert (found[4], found[5], float(found[6])) == ("utf8mb4_nopad_bin", 10, 60.0)
    assert found[7] == 0  # the driver would print that a table exists already


@pytest.mark.covers("MB-2")
async def test_server_that_cuts_results_off_or_ends_connections_changes_nothing() -> None:
    if programs() is None:
        absent("mariadb", "mariadbd is not installed")
    own = MariadbServer()
    own.start()
    try:
        settings = "sql_select_limit = 1", "completion_type = 2", "max_join_size = 1", "tx_read_only = 1"
        await until_ready(own)
        mariadb.execute("CREATE DATABASE runs", own.address)
        for each in (*settings, "foreign_key_checks = 0", "unique_checks = 0", "sql_safe_updates = 1"):
            mariadb.execute(f"SET GLOBAL {each}", own.address)
        store = await open_store(own.address.replace("/mysql", "/runs"))
        for name in "abc":
            await store.put_document(Document(tenant="t", kind="k", name=name, body=b"1"))
        assert [each.name for each in await store.documents("t", "k")] == ["a", "b", "c"]
        await store.close()
    finally:
        own.remove()


async def until_ready(own: MariadbServer) -> None:
    """The port answers before the server does."""
    async with asyncio.timeout(60):
        while True:
            try:
                mariadb.execute("SELECT 1", own.address)
            except Exception:
                await asyncio.sleep(0.05)
            else:
                return


@pytest.mark.covers("MB-2")
async def test_equal_update_counts_its_row(store: MariadbStore, address: str) -> None:
    await store.put_document(Document(tenant="t", kind="k", name="n", body=b"1", revision=0, updated_at=0))
    pools = await pools_of(address)
    assert (
        await pools.write(lambda conn: conn.run("UPDATE documents SET name = name WHERE tenant = 't'")) == 1
    )
    await pools.close()


@pytest.mark.covers("MB-3")
@pytest.mark.parametrize("code", [1213, 1205, 1020])
async def test_transaction_is_repeated_as_a_whole_when_the_server_asks_for_it(
    address: str, code: int
) -> None:
    pools = await pools_of(address)
    await pools.write(lambda conn: conn.run("INSERT INTO turns (tenant, turn) VALUES ('t', 0)"))
    tries = 0

    async def work(conn: MariadbConn) -> int:
        nonlocal tries
        tries += 1
        await conn.run("UPDATE turns SET turn = turn + 1")
        if tries < 4:
            await conn.send(f"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = 'again'")
        return tries

    assert await pools.write(work) == 4
    found = await pools.read(lambda conn: conn.rows("SELECT turn FROM turns"))
    assert found == [(1,)], "what the others wrote was rolled back"
    tries = -10
    with pytest.raises(StoreBusyError):
        await pools.write(work)
    assert tries == -5, "five times at most"
    await pools.close()


@pytest.mark.covers("MB-3")
async def test_both_of_two_transactions_succeed_when_they_lock_each_other_out(address: str) -> None:
    pools = await pools_of(address)
    await pools.write(lambda conn: conn.run("INSERT INTO turns (tenant, turn) VALUES ('a', 0), ('b', 0)"))
    both = asyncio.Barrier(2)
    met = 0

    async def add(conn: MariadbConn, names: str) -> None:
        nonlocal met
        for name in names:
            await conn.run("UPDATE turns SET turn = turn + 1 WHERE tenant = ?", name)
            if met < 2:
                met += 1
                await both.wait()

    await asyncio.gather(pools.write(lambda c: add(c, "ab")), pools.write(lambda c: add(c, "ba")))
    assert await pools.read(lambda conn: conn.rows("SELECT turn FROM turns ORDER BY tenant")) == [(2,), (2,)]
    await pools.close()


@pytest.mark.covers("MB-3")
async def test_connection_of_a_cancelled_statement_is_closed_and_never_used_again(address: str) -> None:
    pool = LoopPool(settings(address), await primary_of(address))
    seen: list[Any] = []

    async def slow() -> None:
        async with pool.connection() as conn:
            seen.append(conn.raw)
            await conn.send("SELECT sleep(5)")

    task = asyncio.create_task(slow())
    while not seen:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with pool.connection() as conn:
        assert conn.raw is not seen[0]
        assert await conn.row("SELECT 1") == (1,)
    assert not seen[0].connected
    await pool.close()


async def test_write_is_completed_when_its_caller_is_cancelled(store: MariadbStore) -> None:
    given = Document(tenant="t", kind="k", name="n", body=b"1", revision=0, updated_at=0)
    task = asyncio.create_task(store.put_document(given))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(HANG):
        while await store.document("t", "k", "n") is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda a: a.rpartition("/")[0], SettingsError, "names no database"),
        (lambda a: f"{a}?pool=0", SettingsError, "pool"),
        (lambda a: f"{a}?colour=red", SettingsError, "colour"),
        (lambda a: f"{a}?host=elsewhere", SettingsError, "part of the address"),
        (lambda a: f"{a}_absent", StoreUnavailableError, "there is no database"),
        (lambda a: f"{a}?tls=verify&ca=/nowhere.pem", SettingsError, "/nowhere.pem"),
        (lambda a: f"mariadb://root@127.0.0.1:1/{a.rpartition('/')[2]}", StoreUnavailableError, "be reached"),
    ],
)  # fmt: skip
async def test_wrong_address_is_refused_in_one_sentence(
    address: str, change: Any, error: type[StoreError], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        await open_store(change(address))
    assert "secret" not in str(caught.value)


def test_password_is_in_no_message() -> None:
    found = settings("mariadb://ada:se%40cret@db:3307/runs")
    assert (found.password, found.port, found.shown) == ("se@cret", 3307, "mariadb://ada@db:3307/runs")
    assert mariadb.LOOPBACK.startswith("mariadb://")
