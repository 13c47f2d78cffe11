"""Servers that cannot be used: one clear sentence each, and the database as it was."""

from __future__ import annotations

import secrets
import sys
from urllib.parse import urlsplit, urlunsplit

import pytest

from holdfast.errors import (
    HoldfastError,
    NotAStoreError,
    SchemaTooNewError,
    SettingsError,
    StoreUnavailableError,
)
from holdfast.store.open import open_store
from holdfast.store.sql.postgres.migrate import migrations
from tests.fleet.conftest import schema_of
from tests.services import postgres
from tests.services.pgcluster import free_port

NEW_SCHEMA = True
pytestmark = pytest.mark.anyio


async def refused(address: str, kind: type[HoldfastError], *words: str) -> HoldfastError:
    with pytest.raises(kind) as caught:
        await open_store(address)
    said = str(caught.value)
    assert all(word in said for word in words), said
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://h/d?pool=many", ("pool",)),
        ("postgresql://h/d?pool=0", ("pool",)),
        ("postgresql://h/d?schema=My-Schema", ("My-Schema",)),
        ("postgresql://h/d?schema=", ("schema",)),
        ("postgresql://h:port/d", ("port",)),
        ("postgres:h/d", ("postgres:h/d",)),
        ("mysql://h/d", ("mysql://h/d", "postgresql://")),
    ],
)
@pytest.mark.covers("FLEET-BAD-01")
async def test_address_that_means_nothing_is_refused_in_one_sentence(address: str, words: tuple[str]) -> None:
    await refused(address, SettingsError, *words)


@pytest.mark.covers("FLEET-BAD-01")
async def test_password_is_in_no_message() -> None:
    address = f"postgresql://ada:geheim@127.0.0.1:{free_port()}/d?timeout=2"
    error = await refused(address, StoreUnavailableError, "cannot be reached", "ada@127.0.0.1")
    assert "geheim" not in str(error)


@pytest.mark.covers("FLEET-BAD-01")
async def test_database_that_is_not_there_is_named() -> None:
    await refused(
        postgres.with_path(postgres.server(), "nowhere_at_all"), StoreUnavailableError, "nowhere_at_all"
    )


@pytest.mark.covers("FLEET-BAD-01")
async def test_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("asyncpg", "holdfast.store.sql.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    await refused("postgresql://h/d", SettingsError, "asyncpg", "[postgres]")


@pytest.mark.covers("FLEET-BAD-02")
async def test_user_who_may_not_create_is_reported(address: str) -> None:
    role = f"holdfast_test_{secrets.token_hex(4)}"
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'")
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        other = urlunsplit((parts.scheme, f"{role}:p@{host}", parts.path, parts.query, ""))
        await refused(other, StoreUnavailableError, "not allowed", "CREATE")
    finally:
        postgres.execute(f"DROP ROLE {role}")
    assert postgres.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema_of(address)}'") == []


@pytest.mark.covers("FLEET-BAD-03")
async def test_newer_schema_is_left_as_it_is(address: str) -> None:
    await (await open_store(address)).close()
    schema = schema_of(address)
    postgres.execute(f"INSERT INTO {schema}.migrations VALUES (999, 'later', 0)")
    await refused(address, SchemaTooNewError, "999", "Update Holdfast")
    assert postgres.execute(f"SELECT max(number) FROM {schema}.migrations") == [(999,)]


@pytest.mark.covers("FLEET-BAD-03")
async def test_older_schema_is_brought_up_to_date(address: str) -> None:
    from holdfast.store.sql.postgres.connect import statement

    schema, first = schema_of(address), migrations()[0]
    postgres.execute(f"CREATE SCHEMA {schema}")
    postgres.execute(statement(first.sql, schema))
    postgres.execute(f"INSERT INTO {schema}.migrations VALUES ({first.number}, '{first.name}', 0)")
    store = await open_store(address)
    assert (await store.examine(deep=True)).schema == migrations()[-1].number
    await store.close()


@pytest.mark.covers("FLEET-BAD-03")
async def test_schema_of_somebody_else_is_left_as_it_is(address: str) -> None:
    schema = schema_of(address)
    postgres.execute(f"CREATE SCHEMA {schema}")
    postgres.execute(f"CREATE TABLE {schema}.theirs (n int)")
    await refused(address, NotAStoreError, schema, "?schema=")
    assert postgres.execute(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'") == [("theirs",)]


@pytest.mark.covers("FLEET-BAD-04")
async def test_server_that_only_reads_is_refused(address: str) -> None:
    name = f"holdfast_test_{secrets.token_hex(6)}"
    postgres.execute(f"CREATE DATABASE {name}", postgres.server())
    try:
        postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on", postgres.server())
        await refused(
            postgres.with_path(postgres.server(), name), StoreUnavailableError, "replicas", "primary"
        )
    finally:
        postgres.execute(f"DROP DATABASE {name}", postgres.server())
