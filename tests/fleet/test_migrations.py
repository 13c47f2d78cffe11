"""Migrations in two halves: what each may do, and what a fleet at work notices of them."""

from __future__ import annotations

import asyncio
import re
import secrets
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from holdfast.errors import OlderWorkerError, SchemaTooNewError, StoreBusyError, StoreUnavailableError
from holdfast.store import upgrade
from holdfast.store.open import open_store
from holdfast.store.sql.postgres import migrate
from holdfast.store.sql.postgres.migration_files import (
    PostgresMigration,
    concurrent_statements,
    creation_sql,
    index_of,
    migrations,
    transactional_sql,
)
from holdfast.types.clock import MICROS
from holdfast.types.fleet import WorkerRow
from tests.deadlines import HANG
from tests.fleet.conftest import schema_of
from tests.services import postgres

NEW_SCHEMA = True
pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PG-11")]

NEWEST = migrations()[-1].number
MORE = PostgresMigration(
    NEWEST + 1,
    "more",
    "ALTER TABLE @runs ADD COLUMN more bigint NOT NULL DEFAULT 0;\n"
    "CREATE INDEX CONCURRENTLY runs_by_more ON @runs (more, created_at);\n",
    "ALTER TABLE @runs ADD CONSTRAINT runs_more CHECK (more >= 0);\n"
    "DROP INDEX CONCURRENTLY IF EXISTS @runs_by_flow;\n",
)


@pytest.fixture
def more(monkeypatch: pytest.MonkeyPatch) -> PostgresMigration:
    """The next release, which adds one number."""
    monkeypatch.setattr(migrate, "migrations", lambda: [*migrations(), MORE])
    return MORE


@pytest.fixture
async def used(address: str) -> str:
    """A store of today, in use."""
    await (await open_store(address)).close()
    return address


async def opened(address: str) -> None:
    await (await open_store(address)).close()


def numbers(address: str) -> tuple[int, list[tuple[object, ...]]]:
    """(what older code reads, the halves that were begun)"""
    schema = schema_of(address)
    ((newest,),) = postgres.execute(f"SELECT max(number) FROM {schema}.migrations")
    return int(str(newest)), postgres.execute(f"SELECT number, whole FROM {schema}.halves ORDER BY number")


def has(address: str, kind: str, name: str) -> bool:
    schema = schema_of(address)
    runs = f"'{schema}.runs'::regclass"
    sql = {
        "column": f"SELECT 1 FROM pg_attribute WHERE attrelid = {runs} AND attname = '{name}'",
        "index": f"SELECT 1 FROM pg_indexes WHERE schemaname = '{schema}' AND indexname = '{name}'",
        "constraint": f"SELECT 1 FROM pg_constraint WHERE conrelid = {runs} AND conname = '{name}'",
    }
    return postgres.execute(sql[kind]) != []


# ---------------------------------------------------------------------- the files


def test_every_first_half_leaves_what_the_last_release_uses() -> None:
    """What is dropped, renamed or tightened stands in a second half: the code of the last release goes on."""
    for each in migrations()[2:]:
        words = each.sql.upper()
        assert not any(word in words for word in ("DROP ", "RENAME ", "SET NOT NULL")), each.name
        assert not re.search(r"ALTER COLUMN \w+ (SET DATA )?TYPE ", words), each.name


def test_statements_that_run_outside_are_distinguished() -> None:
    assert "CONCURRENTLY" not in transactional_sql(MORE.sql)
    assert concurrent_statements(MORE.sql) == [
        "CREATE INDEX CONCURRENTLY runs_by_more ON @runs (more, created_at)"
    ]
    assert index_of(concurrent_statements(MORE.sql)[0]) == "runs_by_more"
    assert "CREATE INDEX runs_by_more ON @runs (more, created_at);" in creation_sql(MORE.sql)
    assert [index_of(each) for each in concurrent_statements(MORE.post)] == [None]


# ---------------------------------------------------------------------- the two halves


async def test_new_schema_is_whole_at_once(address: str, more: PostgresMigration) -> None:
    await opened(address)
    assert numbers(address) == (more.number, [])
    assert has(address, "index", "runs_by_more")
    assert has(address, "constraint", "runs_more")


async def test_first_half_runs_when_a_newer_version_opens_the_second_when_asked(
    used: str, more: PostgresMigration
) -> None:
    assert [step.number for step in (await upgrade.read_upgrade(used)).to_begin] == [more.number]
    assert not has(used, "column", "more"), "looking changes nothing"
    await opened(used)
    await opened(used)
    assert numbers(used) == (NEWEST, [(more.number, True)])
    assert has(used, "column", "more")
    assert has(used, "index", "runs_by_more")
    assert has(used, "index", "runs_by_flow")
    assert not has(used, "constraint", "runs_more")
    (left,) = (await upgrade.read_upgrade(used)).to_finish
    assert (left.number, left.does) == (more.number, more.post)

    done = await upgrade.finish_upgrade(used)
    assert (done.number, done.to_finish) == (more.number, [])
    assert numbers(used) == (more.number, [])
    assert has(used, "constraint", "runs_more")
    assert not has(used, "index", "runs_by_flow")
    assert await upgrade.finish_upgrade(used) == done, "a second time changes nothing"


async def test_version_of_before_goes_on_beside_the_first_half_and_is_refused_after_the_second(
    used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(migrate, "migrations", lambda: [*migrations(), MORE])
        await opened(used)
    await opened(used)
    with pytest.raises(SchemaTooNewError, match="begun by a newer version"):
        await upgrade.finish_upgrade(used, anyway=True)
    with monkeypatch.context() as newer:
        newer.setattr(migrate, "migrations", lambda: [*migrations(), MORE])
        await upgrade.finish_upgrade(used)
    with pytest.raises(SchemaTooNewError, match=f"has number {MORE.number}"):
        await opened(used)


async def test_second_half_waits_for_the_workers_of_an_older_version(
    used: str, more: PostgresMigration
) -> None:
    await opened(used)
    store = await open_store(used)
    old = WorkerRow(name="w-old", incarnation="i", host="h", pid=1, release="0.0.9", started_at=store.now())
    await store.put_worker(old, 60 * MICROS)
    await store.close()
    with pytest.raises(OlderWorkerError) as caught:
        await upgrade.finish_upgrade(used)
    assert "worker w-old (0.0.9)" in caught.value.message
    assert caught.value.hint
    assert numbers(used)[0] == NEWEST
    store = await open_store(used)
    await store.drop_worker("w-old", "i")
    await store.close()
    await upgrade.finish_upgrade(used)
    assert numbers(used)[0] == more.number


async def test_second_half_waits_for_sessions_that_do_not_know_it(used: str, more: PostgresMigration) -> None:
    """Versions from before there was a register: only their sessions tell of them."""
    await opened(used)
    schema = schema_of(used)
    connection = await asyncpg.connect(postgres.database())
    try:
        await connection.fetch(f'SELECT 1 FROM "{schema}".runs')
        with pytest.raises(OlderWorkerError, match=r"session \d+ \(without a name\)"):
            await upgrade.finish_upgrade(used)
        await upgrade.finish_upgrade(used, anyway=True)
        assert numbers(used)[0] == more.number
    finally:
        await connection.close()


async def test_earlier_upgrade_is_to_be_finished_before_the_next_begins(
    used: str, more: PostgresMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schema_of(used)
    postgres.execute(f"UPDATE {schema}.migrations SET number = -1 WHERE number = {NEWEST}")
    postgres.execute(f"INSERT INTO {schema}.halves VALUES ({NEWEST}, 'x', 0, true)")
    monkeypatch.setattr(migrate, "RELEASED", NEWEST)
    with pytest.raises(StoreUnavailableError, match="earlier upgrade") as caught:
        await opened(used)
    assert "--finish" in str(caught.value.hint)
    assert not has(used, "column", "more")


# ---------------------------------------------------------------------- a fleet at work

WAITING = "SELECT count(*) FROM pg_locks WHERE relation = $1::text::regclass AND NOT granted"


async def test_change_that_waits_for_a_table_stands_back_so_that_others_go_on(
    used: str, more: PostgresMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", 0.3)
    schema = schema_of(used)
    reader = await asyncpg.connect(postgres.database())
    other = await asyncpg.connect(postgres.database())
    try:
        async with reader.transaction():
            await reader.fetch(f"SELECT count(*) FROM {schema}.runs")
            opening = asyncio.create_task(opened(used))
            # They come behind a change that waits, and without a bound would wait as long as it does: for
            # the end of this transaction.
            async with asyncio.timeout(HANG):
                for _ in range(3):
                    while not await other.fetchval(WAITING, f"{schema}.runs"):  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                    await other.fetch(f"SELECT count(*) FROM {schema}.runs")
            assert not opening.done()
        await asyncio.wait_for(opening, HANG)
    finally:
        await reader.close()
        await other.close()
    assert has(used, "column", "more")


async def test_change_gives_up_after_a_while_with_nothing_half_done(
    used: str, more: PostgresMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", 0.1)
    monkeypatch.setattr(migrate, "MAX_WAIT", 0.5)
    connection = await asyncpg.connect(postgres.database())
    try:
        async with connection.transaction():
            await connection.fetch(f"SELECT count(*) FROM {schema_of(used)}.runs")
            with pytest.raises(StoreBusyError, match="could not be migrated") as caught:
                await opened(used)
    finally:
        await connection.close()
    assert "pg_stat_activity" in str(caught.value.hint)
    assert numbers(used) == (NEWEST, [])
    assert not has(used, "column", "more")


async def test_who_waits_for_another_that_migrates_is_reported(
    used: str, more: PostgresMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "MAX_WAIT", 0.3)
    number = migrate._lock_number(schema_of(used))  # pyright: ignore[reportPrivateUsage]
    connection = await asyncpg.connect(postgres.database())
    try:
        async with connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({number})")
            with pytest.raises(StoreBusyError, match="another process is changing it") as caught:
                await opened(used)
    finally:
        await connection.close()
    assert "when it is done" in str(caught.value.hint)
    assert numbers(used) == (NEWEST, [])


async def test_index_is_built_once_when_many_open_at_once(used: str, more: PostgresMigration) -> None:
    """Whoever waits does not wait in a statement: building an index would wait for it in turn."""
    await asyncio.gather(*(opened(used) for _ in range(6)))
    assert numbers(used) == (NEWEST, [(more.number, True)])
    ((valid,),) = postgres.execute(
        f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{schema_of(used)}.runs_by_more'::regclass"
    )
    assert valid


async def test_index_whose_build_was_broken_off_is_built_anew(
    used: str, more: PostgresMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schema_of(used)
    with monkeypatch.context() as broken:
        broken.setattr(
            migrate,
            "concurrent_statements",
            lambda _sql: ["CREATE INDEX CONCURRENTLY runs_by_more ON @nowhere (x)"],
        )
        with pytest.raises(Exception, match="nowhere"):
            await opened(used)
    assert numbers(used) == (NEWEST, [(more.number, False)])
    # What a process leaves that dies while it builds.
    postgres.execute(f"CREATE INDEX runs_by_more ON {schema}.runs (more)")
    postgres.execute(
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{schema}.runs_by_more'::regclass"
    )
    await opened(used)
    assert numbers(used) == (NEWEST, [(more.number, True)])
    assert postgres.execute(f"SELECT indexdef FROM pg_indexes WHERE indexname = 'runs_by_more' "
                            f"AND schemaname = '{schema}'")[0][0].endswith("(more, created_at)")  # fmt: skip


async def test_index_is_built_where_the_server_ends_idle_transactions_soon(
    used: str, more: PostgresMigration
) -> None:
    """Whoever builds has the lock in a transaction that says nothing meanwhile."""
    role = f"holdfast_test_{secrets.token_hex(4)}"
    postgres.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'p'")
    postgres.execute(f"ALTER ROLE {role} SET idle_in_transaction_session_timeout = '200ms'")
    parts = urlsplit(used)
    host = parts.netloc.rpartition("@")[2]
    blocker = await asyncpg.connect(postgres.database())
    try:
        async with blocker.transaction(isolation="repeatable_read"):
            await blocker.fetchval("SELECT 1")  # the build waits for who has an older snapshot
            opening = asyncio.create_task(opened(urlunsplit(parts._replace(netloc=f"{role}:p@{host}"))))
            await asyncio.sleep(1.0)
        await opening
    finally:
        await blocker.close()
        postgres.execute(f"DROP ROLE {role}")
    assert numbers(used) == (NEWEST, [(more.number, True)])


async def test_user_who_may_not_migrate_is_reported_who_can(used: str, more: PostgresMigration) -> None:
    role, schema = f"holdfast_test_{secrets.token_hex(4)}", schema_of(used)
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'")
    everything = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"
    postgres.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    postgres.execute(f"GRANT {everything} IN SCHEMA {schema} TO {role}")
    postgres.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}")
    parts = urlsplit(used)
    host = parts.netloc.rpartition("@")[2]
    theirs = urlunsplit((parts.scheme, f"{role}:p@{host}", parts.path, parts.query, ""))
    try:
        with pytest.raises(StoreUnavailableError) as caught:
            await opened(theirs)
        assert "may not change it" in caught.value.message
        assert "holdfast migrate" in str(caught.value.hint)
        assert numbers(used) == (NEWEST, [])
        await upgrade.begin_upgrade(used)
        await opened(theirs)
    finally:
        postgres.execute(f"DROP OWNED BY {role}")
        postgres.execute(f"DROP ROLE {role}")
