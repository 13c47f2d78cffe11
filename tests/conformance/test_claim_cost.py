"""What a claim reads beside runs that its worker does not serve: counted by the database, never timed."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

import apsw
import msgspec
import pytest

from holdfast.store.open import open_store
from holdfast.store.rows import ClaimRequest
from holdfast.store.sql.mariadb import MariadbStore
from holdfast.store.sql.mariadb import claim as mariadb_claim
from holdfast.store.sql.postgres import PostgresStore
from holdfast.store.sql.postgres import claim as postgres_claim
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.served_versions import Crowd
from holdfast.store.sql.sqlite import claim as sqlite_claim
from tests.operations import async_operations
from tests.services import mariadb, postgres

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-S2", "FLEET-WORK-02")]

FEW, MANY = 1500, 8000
# A version of its own code, a dialect, and one of the documents that it can run.
WANT = ClaimRequest(worker="w", ttl=10**9, versions=("g1-mine", "document", "attractor-mine"), limit=2)
COLUMNS = "head, event_seq, updated_at, priority, lane, id, tenant, flow, version, code, created_at, ready_at"
ROW = "0, 0, 0, {urgent}, 'main', {id}, {tenant}, 'f', {version}, 'c', 1, {at}"


def rows(others: int, tenants: int) -> list[str]:
    """`others` of three versions that are more urgent and older, then a few that are served."""
    version = "CASE n % 3 WHEN 0 THEN 'g1-other' WHEN 1 THEN 'attractor-a' ELSE 'attractor-z' END"
    selects: list[str] = []
    if others:
        tenant = f"'t' || n % {tenants}"
        some = ROW.format(urgent="n % 2", id="'other' || n", tenant=tenant, version=version, at=1)
        selects.append(f"SELECT {some} FROM {{numbers:{others}}}")
    mine = "CASE n % 2 WHEN 0 THEN 'g1-mine' ELSE 'attractor-mine' END"
    some = ROW.format(urgent=0, id="'mine' || n", tenant="'t0'", version=mine, at=2)
    return [*selects, f"SELECT {some} FROM {{numbers:6}}"]


def filling(others: int, tenants: int, numbers: str) -> list[str]:
    """`numbers`: how the dialect makes rows with the numbers from 1 to `{}`."""
    found = rows(others, tenants)
    counts = [others, 6][-len(found) :]
    return [
        f"INSERT INTO runs ({COLUMNS}) " + select.replace(f"{{numbers:{count}}}", numbers.format(count))
        for select, count in zip(found, counts, strict=True)
    ]


CASES = pytest.mark.parametrize("tenants", [1, 40])


# ---------------------------------------------------------------------- SQLite

NUMBERS = "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {}) SELECT n FROM c)"


async def sqlite_steps(file: Path, others: int, tenants: int, want: ClaimRequest = WANT) -> tuple[int, int]:
    """Steps of SQLite's machine: of the look whether there is anything, and of the claim."""
    await (await open_store(f"sqlite:{file}")).close()
    db = apsw.Connection(str(file))
    for text in filling(others, tenants, NUMBERS):
        db.execute(text)
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    cur: Any = db.cursor()
    db.set_progress_handler(count, 1)
    ready = sqlite_claim.any_ready(cur, 10, want, Crowd())
    looked, steps = steps, 0
    claimed = sqlite_claim.claim(cur, 10, want, Crowd()).claims
    db.set_progress_handler(None)
    db.close()
    assert (ready, len(claimed)) == ((True, 2) if want is WANT else (False, 0))
    return looked, steps


@CASES
async def test_sqlite_reads_no_more_rows_where_more_are_of_other_workers(
    tenants: int, tmp_path: Path
) -> None:
    few = await sqlite_steps(tmp_path / "few.db", FEW, tenants)
    many = await sqlite_steps(tmp_path / "many.db", MANY, tenants)
    assert many[0] <= few[0] + 50
    assert many[1] <= few[1] + 200


async def test_sqlite_finds_that_nothing_is_there_without_reading_all_runs(tmp_path: Path) -> None:
    want = msgspec.structs.replace(WANT, versions=("g1-none",))
    few = await sqlite_steps(tmp_path / "few.db", FEW, 1, want)
    many = await sqlite_steps(tmp_path / "many.db", MANY, 1, want)
    assert many[0] <= few[0] + 50
    assert many[1] <= few[1] + 50


# ---------------------------------------------------------------------- PostgreSQL


class Explaining(PostgresConnection):
    """Counts the pages that each statement reads."""

    pages = 0

    async def rows(self, text: str, *args: Any) -> list[Any]:
        if "RECURSIVE" in text:
            found = await super().rows(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", *args)
            plan = msgspec.json.decode(found[0][0])[0]["Plan"]
            self.pages += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return await super().rows(text, *args)


async def postgres_pages(others: int, tenants: int) -> int:
    # A new one: the index of one from which rows were deleted has pages without them.
    schema = f"t_{secrets.token_hex(4)}"
    store = await open_store(postgres.with_setting(postgres.database(), schema=schema))
    assert isinstance(store, PostgresStore)

    async def claimed(conn: Any) -> int:
        for text in filling(others, tenants, "generate_series(1, {}) AS n"):
            await conn.run(text.replace("INTO runs", "INTO @runs"))
        await conn.run("ANALYZE @runs")
        counted = Explaining(conn.raw, schema)
        found = await postgres_claim.claim(counted, 10, WANT, Crowd())
        assert isinstance(found, postgres_claim.ClaimResult)
        assert len(found.claims) == 2
        return counted.pages

    try:
        return await store._pools.write(claimed)  # pyright: ignore[reportPrivateUsage]
    finally:
        await store.close()


@CASES
async def test_postgres_reads_no_more_pages_where_more_are_of_other_workers(tenants: int) -> None:
    few = await postgres_pages(FEW, tenants)
    assert await postgres_pages(MANY, tenants) <= few + 50


# ---------------------------------------------------------------------- MariaDB

READS = "SHOW SESSION STATUS LIKE 'Handler_read%'"


async def mariadb_reads(others: int, tenants: int) -> int:
    address = mariadb.database("claim_cost")
    await mariadb.empty(address)
    store = await open_store(address)
    assert isinstance(store, MariadbStore)

    async def filled(conn: Any) -> None:
        for text in filling(others, tenants, "(SELECT seq AS n FROM seq_1_to_{}) AS numbers"):
            await conn.send(concatenated(text))
        await conn.send_rows("ANALYZE TABLE runs")

    async def claimed(conn: Any) -> int:
        before = sum(int(count) for _, count in await conn.rows(READS))
        found = await mariadb_claim.claim(conn, 10, WANT)
        assert len(found.claims) == 2
        return sum(int(count) for _, count in await conn.rows(READS)) - before

    try:
        await store._pools.write(filled)  # pyright: ignore[reportPrivateUsage]
        return await store._pools.write(claimed)  # pyright: ignore[reportPrivateUsage]
    finally:
        await store.close()


def concatenated(text: str) -> str:
    """MariaDB reads `||` as OR."""
    for name in ("other", "mine", "t"):
        text = text.replace(f"'{name}' || n % 40", f"concat('{name}', n % 40)")
        text = text.replace(f"'{name}' || n % 1", f"concat('{name}', n % 1)")
        text = text.replace(f"'{name}' || n", f"concat('{name}', n)")
    return text


@CASES
async def test_mariadb_reads_no_more_rows_where_more_are_of_other_workers(tenants: int) -> None:
    few = await mariadb_reads(FEW, tenants)
    assert await mariadb_reads(MANY, tenants) <= few + 100


# ---------------------------------------------------------------------- memory


async def memory_calls(kit: StoreKit, store: Store, others: int) -> int:
    for _ in range(others):
        await store.create(kit.new_run(version="g1-other", priority=1))
    await store.create(kit.new_run(version="g1-mine"))
    want = msgspec.structs.replace(WANT, limit=1)
    return await async_operations(partial(store.claim, want))


@pytest.mark.parametrize("kit", ["memory"], indirect=True)
async def test_memory_does_no_more_where_more_are_of_other_workers(kit: StoreKit) -> None:
    few = await memory_calls(kit, await open_store("memory:", clock=kit.clock), 10)
    assert await memory_calls(kit, await open_store("memory:", clock=kit.clock), 500) == few
